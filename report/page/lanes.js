// Panel B: replicas as lanes, partitions as blocks that slide from lane to lane.
const SLIDE_MS = 400, MAX_BLOCKS = 300, GAP_PX = 2;
const SHADES = ["calm", "warm", "hot", "unknown"];
const shadeOf = (age, target_s) => SHADES[age === null ? 3 : age < 500 * target_s ? 0 : age < 1000 * target_s ? 1 : 2]; // age of the oldest event, ms
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
class Lanes {
  constructor() {
    this.box = make("div", "run");
    this.title = this.box.appendChild(make("h3"));
    this.list = this.box.appendChild(make("ul", "lanes"));
    this.replicas = new Map();
    this.blocks = new Map();
    this.owner = {};
  }
  draw(state, title) {
    setText(this.title, title);
    this.title.hidden = !title;
    const partitions = Object.entries(state.partitions ?? {}), names = Object.keys(state.replicas ?? {}).sort(natural);
    if (partitions.length > MAX_BLOCKS) return this.drawStrip(partitions, names, state);
    const load = {}, held = {};
    for (const [, [owner, rate]] of partitions) {
      load[owner] = (load[owner] ?? 0) + rate;
      held[owner] = (held[owner] ?? 0) + 1;
    }
    const mu = state.service_rate || Math.max(1, ...Object.values(load)), top = Math.max(1.25, ...Object.values(load).map(rate => rate / mu));
    const isMoving = partitions.some(([number, [owner]]) => this.owner[number] !== undefined && this.owner[number] !== owner);
    const before = isMoving && !isStill.matches ? new Map([...this.blocks].map(([key, block]) => [key, block.getBoundingClientRect()])) : new Map();
    const isMany = names.length > 12, tall = this.list.querySelector(".stack")?.clientHeight || (isMany ? 110 : 300); // read before anything is written
    this.list.classList.toggle("many", isMany);
    for (const [name, lane] of this.replicas) if (!names.includes(name) && !held[name]) { lane.remove(); this.replicas.delete(name); }
    for (const name of names) this.drawReplica(name, state, load[name] ?? 0, held[name] ?? 0, mu, top);
    names.forEach((name, place) => {
      const lane = this.replicas.get(name);
      if (this.list.children[place] !== lane) this.list.insertBefore(lane, this.list.children[place] ?? null);
    });
    for (const [number, row] of partitions) this.drawBlock(number, row, state, mu, top, tall);
    for (const [number, block] of this.blocks) if (!(number in (state.partitions ?? {}))) { block.remove(); this.blocks.delete(number); }
    const places = [...before].map(([number, from]) => [this.blocks.get(number), from, this.blocks.get(number)?.getBoundingClientRect()]);
    for (const place of places) this.slide(...place); // all are read first: each animation would cost a layout
    if (!this.list.querySelector(".block[tabindex='0']")) this.list.querySelector(".block")?.setAttribute("tabindex", "0");
  }
  drawReplica(name, state, rate, held, mu, top) {
    let lane = this.replicas.get(name);
    if (!lane) {
      lane = make("li", "replica");
      lane.dataset.replica = name;
      lane.append(make("p", "head", name), make("p", "head"), make("div", "stack"));
      this.replicas.set(name, lane);
    }
    const [phase, since] = state.replicas[name];
    const left = Math.max(0, since / 1e6 + state.startup_s - state.now_us / 1e6);
    const words = { starting: state.startup_s && left > 0 ? `ready in ${left.toFixed(1)} s` : "starting", ready: `${number(100 * rate / mu)} % of μ`, draining: "draining", dead: "dead" };
    lane.className = `replica ${phase}`;
    setText(lane.children[1], words[phase] ?? phase);
    lane.children[2].style.setProperty("--mu", `${100 / top}%`);
    lane.setAttribute("aria-label", `${name}: ${phase}, ${number(100 * rate / mu)} % of its service rate, ${held} partitions`);
  }
  drawBlock(key, [owner, rate, lag, age], state, mu, top, tall) {
    const stack = this.replicas.get(owner)?.children[2];
    let block = this.blocks.get(key);
    if (!block) {
      block = make("button", "block calm");
      Object.assign(block, { type: "button", tabIndex: -1 });
      block.dataset.partition = key;
      block.setAttribute("aria-pressed", "false");
      this.blocks.set(key, block);
    }
    if (!stack) block.remove();
    else if (block.parentElement !== stack) {
      const next = [...stack.children].find(other => +other.dataset.partition > +key);
      stack.insertBefore(block, next ?? null);
    }
    const shade = shadeOf(age, state.target_s);
    for (const name of SHADES) block.classList.toggle(name, name === shade);
    const height = tall * rate / mu / top - GAP_PX;
    block.style.setProperty("--h", `${Math.max(2, height).toFixed(1)}px`);
    block.style.fontSize = `${Math.min(11.5, height - 1).toFixed(1)}px`;
    setText(block, height < 8 ? "" : `p${key} ${number(rate)}`);
    block.setAttribute("aria-label", `partition ${key} of ${owner || "no replica"}: ${number(rate)} events/s, ${lag} waiting${age ? `, the oldest for ${number(age)} ms` : ""}`);
    block.title = block.getAttribute("aria-label");
    if (this.owner[key] !== undefined && this.owner[key] !== owner) {
      block.classList.add("flash");
      setTimeout(() => block.classList.remove("flash"), Math.max(900, state.pause_ms ?? 0));
    }
    this.owner[key] = owner;
  }
  slide(block, from, to) {
    if (!block?.isConnected || !from.width) return;
    const dx = from.left - to.left, dy = from.top - to.top;
    if (Math.abs(dx) + Math.abs(dy) > 1)
      block.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], { duration: SLIDE_MS, easing: "cubic-bezier(.3, 0, .2, 1)" });
  }
  drawStrip(partitions, names, { target_s }) {
    if (!this.strip) {
      this.strip = make("canvas", "strip");
      this.strip.setAttribute("role", "img");
      this.list.replaceWith(this.strip);
    }
    const rows = new Map(names.map((name, row) => [name, row])), tall = 10;
    Object.assign(this.strip, { width: partitions.length, height: tall * Math.max(1, names.length) });
    const pen = this.strip.getContext("2d"), paint = Object.fromEntries(SHADES.map(name => [name, css(name)]));
    pen.fillStyle = css("grid");
    names.forEach((_, row) => pen.fillRect(0, row * tall + tall - 1, partitions.length, 1));
    partitions.forEach(([, [owner, , , age]], column) => {
      pen.fillStyle = paint[shadeOf(age, target_s)];
      if (rows.has(owner)) pen.fillRect(column, rows.get(owner) * tall, 1, tall - 1);
    });
    this.strip.setAttribute("aria-label", `${partitions.length} partitions (left to right) on ${names.length} replicas (top to bottom)`);
  }
}
