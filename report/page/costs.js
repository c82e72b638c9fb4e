// Panel E: what other policies cost for the same load so far, and the settings that can be tried.
const LINE_PX = [84, 18], MAX_POINTS = 120, PAUSE_MS = 250, RETRY_MS = 1000, MAX_TRIES = 60;
const later = ms => new Promise(done => setTimeout(done, ms));

// Simulated figures at the end of a second: share in time, replica-minutes, and the costs until then.
function figuresAt({ step_s, in_time, replica_minutes }, second, duration_s = Infinity) {
  const place = second >= duration_s ? in_time.length - 1 : Math.min(in_time.length, Math.floor(second / step_s)) - 1;
  const costs = replica_minutes.slice(0, place + 1).map((minutes, step) => [Math.min((step + 1) * step_s, duration_s), minutes]);
  return place < 0 ? {} : { share: in_time[place], minutes: replica_minutes[place], costs };
}

function drawCosts(run) {
  const now = run.state, second = now.now_us / 1e6 - run.origin, found = now.others ?? run.others ?? [];
  const others = found.filter(one => !one.error), failed = found.find(one => one.error)?.error;
  const known = run.costs.map(([at, minutes]) => [at - run.origin, minutes]).filter(([at]) => at >= 0 && at <= second + .5);
  const costs = known.filter((_, place) => place % Math.ceil(known.length / MAX_POINTS) === 0);
  const own = { name: config.live ? "this run" : "recorded", share: now.done ? now.in_time / now.done : undefined, minutes: now.cost_s / 60, costs };
  const rows = [own, ...others.map(one => ({ name: one.policy, ...figuresAt(one, second, now.duration_s) }))];
  if (run.tried) rows.push({ name: "what if", ...run.tried.in_time ? figuresAt(run.tried, second, now.duration_s) : { note: run.tried.error ?? "simulating…" } });
  const body = $("costs"), most = Math.max(...rows.map(row => row.minutes ?? 0), 1e-9), span = Math.max(second, 1);
  const path = points => points.map(([at, cost]) => `${(LINE_PX[0] * at / span).toFixed(1)},${(LINE_PX[1] * (1 - cost / most)).toFixed(1)}`).join(" ");
  while (body.children.length > rows.length) body.lastChild.remove();
  rows.forEach(({ name, note, share, minutes, costs: points = [] }, place) => {
    const line = body.children[place] ?? body.appendChild($("cost-row").content.firstElementChild.cloneNode(true)), cells = line.children;
    setText(cells[0], name);
    cells[1].querySelectorAll("polyline").forEach((drawn, number) => drawn.setAttribute("points", path(number ? costs : points)));
    setText(cells[2], note ?? (share === undefined ? "–" : percent(share)));
    cells[2].className = share === undefined ? "" : share >= (now.percentile ?? .999) ? "met" : "missed";
    setText(cells[3], minutes === undefined ? "–" : number(minutes, 1));
  });
  setText($("costs-note"), config.live && now.others === undefined
    ? "An autoscaler simulates no other policies; the pages of tailpack run, demo and view do."
    : failed ? `other policies were not simulated: ${failed}`
    : rows.length > 1 ? "Simulated for the same load. Grey line: this run." : "");
}

// The server simulates one at a time, and may drop a request that takes long: then it is repeated.
async function simulated(address, isWanted) {
  for (let tries = 0; isWanted(); tries++) {
    if (tries === MAX_TRIES) return { error: "the server does not answer" };
    const answer = await fetch(address).catch(() => null);
    if (answer?.ok || answer?.status === 400) return answer.json();
    await later(RETRY_MS);
  }
}
function offerTries(run, address, whatif) {
  const form = $("whatif"), inputs = [...form.querySelectorAll("input")];
  const words = { replicas: value => value ? `${value}, fixed` : "by the policy", latency_ms: formatMs, startup_ms: formatMs };
  const limits = { replicas: [whatif.replicas, 0], latency_ms: [2000, whatif.latency_ms], startup_ms: [30000, whatif.startup_ms] };
  for (const input of inputs) {
    const [most, given] = limits[input.name];
    Object.assign(input, { max: Math.max(most, 2 * given), defaultValue: given });
    input.dataset.given = input.value; // rounded to the step
  }
  const show = () => inputs.forEach(input => {
    input.nextElementSibling.value = words[input.name](+input.value);
    input.setAttribute("aria-valuetext", input.nextElementSibling.value);
  });
  form.addEventListener("input", show);
  form.addEventListener("change", async () => {
    const mine = run.tried = {}, changed = inputs.filter(input => input.value !== input.dataset.given);
    draw();
    await later(PAUSE_MS); // a key that is held changes the value many times a second
    const found = await simulated(`${address}?${new URLSearchParams(changed.map(({ name, value }) => [name, value]))}`, () => run.tried === mine);
    if (run.tried !== mine) return;
    run.tried = found;
    draw();
    setText($("tried"), found.error ?? `simulated: ${percent(found.in_time.at(-1))} in time, ${number(found.replica_minutes.at(-1), 1)} replica-minutes for the whole run`);
  });
  form.addEventListener("reset", async () => {
    delete run.tried;
    setText($("tried"), "");
    await later(0); // the values are reset after this event
    show();
    draw();
  });
  show();
  form.hidden = false;
}
async function loadOthers(run, address) {
  for (let policy = 0; policy < 3; policy++) {
    const found = await simulated(`${address}?policy=${policy}`, () => true);
    if (found.error) return setText($("tried"), `other policies were not simulated: ${found.error}`);
    run.others = [...run.others, found];
    draw();
  }
}
