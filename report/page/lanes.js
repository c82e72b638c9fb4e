// Panel B: replicas as lanes, partitions as blocks that slide from lane to lane.
const SLIDE_MS = 400, MAX_BLOCKS = 300, GAP_PX = 2, SLIDES_AT_ONCE = 24;
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
  }
  // Yields true where a frame must end: each slide costs a layout and a layer, so few of them start in a frame.
  *draw(state, title) {
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
    const isMoving = partitions.some(([key, [owner]]) => (this.blocks.get(key)?.owner ?? owner) !== owner);
    this.list.classList.toggle("many", names.length > 12);
    for (const name of names) this.drawReplica(name, state, load[name] ?? 0, held[name] ?? 0, mu, top);
    names.forEach((name, place) => {
      const lane = this.replicas.get(name);
      if (this.list.children[place] !== lane) this.list.insertBefore(lane, this.list.children[place] ?? null);
    });
    const tall = this.list.querySelector(".stack")?.clientHeight ?? 0, sizes = {}, filled = {};
    const places = new Map(isMoving && !isStill.matches ? [...this.replicas].map(([name, lane]) => [name, lane.children[2].getBoundingClientRect()]) : []);
    yield isMoving;
    const size = rate => Math.max(2 * GAP_PX, tall * rate / mu / top);
    for (const [, [owner, rate]] of partitions) sizes[owner] = (sizes[owner] ?? 0) + size(rate);
    let slides = 0;
    for (const [number, row] of partitions) {
      const [owner, rate] = row, scale = Math.min(1, tall / sizes[owner]), bottom = filled[owner] ?? 0;
      filled[owner] = bottom + scale * size(rate);
      if (this.drawBlock(number, row, state, bottom, scale * (size(rate) - GAP_PX), places) && ++slides % SLIDES_AT_ONCE === 0) yield true;
    }
    for (const [name, lane] of this.replicas) if (!names.includes(name) && !held[name]) { lane.remove(); this.replicas.delete(name); }
    for (const [number, block] of this.blocks) if (!(number in (state.partitions ?? {}))) { block.remove(); this.blocks.delete(number); }
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
  // bottom, height: in px. Returns whether the block slides.
  drawBlock(key, [owner, rate, lag, age], state, bottom, height, places) {
    const stack = this.replicas.get(owner)?.children[2];
    let block = this.blocks.get(key);
    if (!block) {
      block = make("button", "block calm");
      Object.assign(block, { type: "button", tabIndex: -1, ariaPressed: "false" });
      block.dataset.partition = key;
      this.blocks.set(key, block);
    }
    if (!stack) block.remove();
    else if (block.parentElement !== stack) stack.insertBefore(block, [...stack.children].find(other => +other.dataset.partition > +key) ?? null);
    const shade = shadeOf(age, state.target_s);
    for (const name of SHADES) block.classList.toggle(name, name === shade);
    Object.assign(block.style, { bottom: `${bottom.toFixed(1)}px`, height: `${height.toFixed(1)}px`, fontSize: `${Math.min(11.5, height - 1).toFixed(1)}px` });
    setText(block, height < 8 ? "" : `p${key} ${number(rate)}`);
    block.title = block.ariaLabel = `partition ${key} of ${owner || "no replica"}: ${number(rate)} events/s, ${lag} waiting${age ? `, the oldest for ${number(age)} ms` : ""}`;
    const { owner: before = owner, bottom: below } = block, from = places.get(before), to = places.get(owner);
    Object.assign(block, { owner, bottom });
    if (before !== owner) {
      block.classList.add("flash");
      setTimeout(() => block.classList.remove("flash"), Math.max(900, state.pause_ms ?? 0));
    }
    if (below === undefined || !from || !to) return false;
    const dx = from.left - to.left, dy = from.bottom - below - (to.bottom - bottom);
    if (before === owner && !block.closest(".many") || Math.abs(dx) + Math.abs(dy) < 1) return false; // a style's transition moves it
    block.animate([{ transform: `translate(${dx}px, ${dy}px)` }, { transform: "none" }], { duration: SLIDE_MS, easing: "cubic-bezier(.3, 0, .2, 1)" });
    return true;
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
