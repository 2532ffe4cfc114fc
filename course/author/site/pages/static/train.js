/* The page trains: the course's programs as WebAssembly, on the course's numbers, in this browser. `alive.js` comes first. */

const PLACE = 64; // of the words of the call, in the program's memory

/* Python's random.Random(seed).random, a Mersenne Twister (Matsumoto and Nishimura, 1998, doi.org/10.1145/272991.272995). */
function uniform(seed) {
  const state = new Uint32Array(624);
  const mixed = (k) => state[k - 1] ^ (state[k - 1] >>> 30);
  let at = 624;
  state[0] = 19650218;
  for (let k = 1; k < 624; k++) state[k] = Math.imul(mixed(k), 1812433253) + k;
  for (let turn = 0, k = 1; turn < 624 + 623; turn++) {
    state[k] = turn < 624 ? (state[k] ^ Math.imul(mixed(k), 1664525)) + seed : (state[k] ^ Math.imul(mixed(k), 1566083941)) - k;
    if (++k === 624) [state[0], k] = [state[623], 1];
  }
  state[0] = 0x80000000;

  function word() {
    if (at === 624) {
      for (let k = 0; k < 624; k++) {
        const both = (state[k] & 0x80000000) | (state[(k + 1) % 624] & 0x7fffffff);
        state[k] = state[(k + 397) % 624] ^ (both >>> 1) ^ (both & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let bits = state[at++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    return (bits ^ (bits >>> 18)) >>> 0;
  }

  return () => ((word() >>> 5) * 2 ** 26 + (word() >>> 6)) / 2 ** 53;
}

/* As `batch_order` of course/reader/tasks.py: in each epoch each row once, in the order of as many draws. What is drawn is kept. */
function shuffler(rows) {
  const draw = uniform(1), kept = [];
  return (epoch) => {
    while (kept.length <= epoch) {
      const draws = Float64Array.from({ length: rows }, draw);
      kept.push(Uint16Array.from(draws.keys()).sort((i, j) => draws[i] - draws[j]));
    }
    return kept[epoch];
  };
}

function decoded(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/* A program in its memory, which keeps the weights. Its epoch() trains the next epoch, and returns the loss of each step. */
async function trainer({ x, y, programs }, level, { rows, rate, batch }, order) {
  const { code, words } = programs[level], steps = rows / batch, numbers = { rows, steps, batch, rate };
  const named = { x: decoded(x), y: decoded(y), batches: new Uint8Array(8 * rows), losses: new Uint8Array(8 * steps) };
  named.rate = new Uint8Array(Float64Array.of(rate).buffer);
  const arrays = words.map(([kind, content]) => kind === "ptr" && (named[content] ?? decoded(content))), places = {};
  let end = PLACE + 8 * words.length;
  arrays.forEach((array, k) => {
    places[words[k][1]] = places[k] = end = Math.ceil(end / 64) * 64;
    end += array.length || 0;
  });
  const memory = new WebAssembly.Memory({ initial: Math.ceil(end / 65536) }), view = new DataView(memory.buffer);
  words.forEach(([kind, content], k) => {
    if (arrays[k]) new Uint8Array(memory.buffer).set(arrays[k], places[k]);
    if (kind === "double") view.setFloat64(PLACE + 8 * k, numbers[content], true);
    else view.setUint32(PLACE + 8 * k, arrays[k] ? places[k] : numbers[content], true); // its upper half is zero
  });
  const { instance } = await WebAssembly.instantiate(decoded(code), { env: { __linear_memory: memory } });
  const run = () => instance.exports.program(PLACE);
  let epochs = 0;

  function epoch() {
    order(epochs++).forEach((row, k) => view.setUint32(places.batches + 8 * k, row, true));
    run();
    return new Float64Array(memory.buffer.slice(places.losses, places.losses + 8 * steps));
  }

  /* Microseconds per step, over 0.1 s, because browsers blur single moments; in pieces, so that the page goes on. */
  async function measured() {
    let taken = 0, calls = 0;
    while (taken < 100) {
      await new Promise(requestAnimationFrame);
      const start = performance.now();
      for (; performance.now() - start < 10; calls++) run();
      taken += performance.now() - start;
    }
    return (taken * 1000) / (calls * steps);
  }

  return { epoch, measured };
}

/* The 64 bits of a number, the highest first, and the number in base 16 as Python writes it. */
function bitsOf(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return view.getBigUint64(0).toString(2).padStart(64, "0");
}

function numberOf(digits) {
  return new DataView(decoded(btoa(digits.replace(/../g, (two) => String.fromCharCode(parseInt(two, 16))))).buffer).getFloat64(0);
}

function digitsOf(bits) {
  return bits.slice(12).replace(/..../g, (four) => parseInt(four, 2).toString(16));
}

function hex(number) {
  if (!Number.isFinite(number)) return "";
  const bits = bitsOf(number), power = parseInt(bits.slice(1, 12), 2);
  const exponent = (power || 1) - 1023;
  return `${number < 0 ? "-" : ""}0x${power ? 1 : 0}.${digitsOf(bits)}p${exponent < 0 ? "" : "+"}${exponent}`;
}

function short(number, digits = 4) {
  return Math.abs(number) < 1e5 ? String(Number(number.toPrecision(digits))) : number.toExponential(2).replace("+", "");
}

/* Two rows of bits, in parts that stay together where the line breaks; a row of which nothing is known is null. */
function showBits(place, upper, lower) {
  const parts = [["sign", 0, 1], ["exponent", 1, 12]], heads = { sign: say("sign"), exponent: say("exponent") };
  for (let k = 12; k < 64; k += 4) parts.push(["fraction", k, k + 4]);
  place.replaceChildren(...parts.map(([name, from, to]) => {
    const head = name !== "fraction" ? heads[name] : upper ?? lower ? digitsOf(upper ?? lower)[(from - 12) / 4] : "·";
    const rows = [upper, lower].map((row, which) => {
      const letters = [...(row ?? "·".repeat(64)).slice(from, to)];
      return element("code", {}, ...letters.map((bit, k) =>
        which && upper && lower && bit !== upper[from + k] ? element("b", { textContent: bit }) : bit));
    });
    return element("span", { className: name }, element("small", { textContent: head }), ...rows);
  }));
}

/* The marks of a logarithmic axis: powers of ten, and 2 and 5 times them where there are few. */
function marks(low, high) {
  const decades = Math.log10(high / low), stride = Math.ceil(decades / 6), found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += stride)
    for (const times of decades < 2 ? [1, 2, 5] : [1]) found.push(Number(`${times}e${power}`));
  return found.filter((mark) => low <= mark && mark <= high);
}

/* points: [mean, least, greatest] of each epoch; ended: the last loss, once it is known; record: the points of the course's own run. */
function drawCurve(svg, { points, ended, epochs, steps, span, loss, record }) {
  const width = svg.clientWidth, height = svg.clientHeight, left = 44, right = width - 60, top = 26, bottom = height - 24;
  const means = points.map(([mean]) => mean).filter((mean) => mean > 0);
  const low = Math.min(span[0], ...means), high = Math.max(span[1], ...means);
  const across = (epoch) => left + ((right - left) * epoch) / epochs;
  const up = (value) => bottom - ((bottom - top) * Math.log(Math.min(Math.max(value, low), high) / low)) / Math.log(high / low);
  const spots = (kind, those = points) => those.map((point, k) => `${across(k + 0.5).toFixed(1)},${up(point[kind]).toFixed(1)}`);
  let page = `<path class="axis" d="M${left},${top}V${bottom}H${right}"/><text x="0" y="12">${say("loss ({name})", { name: loss })}</text>`;
  for (const mark of marks(low, high))
    page += `<path class="axis" d="M${left - 4},${up(mark)}h4"/><text x="${left - 7}" y="${up(mark) + 4}" text-anchor="end">${mark < 1e5 ? mark : mark.toExponential().replace("+", "")}</text>`;
  for (const quarter of width < 420 ? [0, 2, 4] : [0, 1, 2, 3, 4]) {
    const at = across((epochs * quarter) / 4), number = ((steps * quarter) / 4).toLocaleString("en");
    page += `<path class="axis" d="M${at},${bottom}v4"/>`;
    page += `<text x="${at}" y="${bottom + 18}" text-anchor="middle">${quarter < 4 ? number : say("{number} steps", { number })}</text>`;
  }
  if (record) page += `<path class="record" d="M${spots(0, record).join("L")}"/>`;
  if (points.length) {
    page += `<path class="band" d="M${[...spots(1), ...spots(2).reverse()].join("L")}Z"/>`;
    page += `<path class="mean" d="M${spots(0).join("L")}"/>`;
  }
  if (Number.isFinite(ended))
    page += `<circle cx="${right}" cy="${up(ended)}" r="4"/><text class="last" x="${right + 8}" y="${up(ended) + 4}">${short(ended)}</text>`;
  svg.innerHTML = page;
}

/* Why not everything can be chosen on a level. */
const WHY = {
  1: say("Level 1 gets learning rate and batch with the call, so both can be changed."),
  2: say("In each step of level 2 Python calls small programs, which numba compiles for the processor. A browser has neither. Notebook 2 runs it."),
  3: say("Level 3 compiles learning rate and batch into the program: to change them, choose level 1."),
  4: say("Level 4 keeps its learning rate in memory, so it can be changed. The batch is compiled into the program."),
  5: say("Level 5 keeps its learning rate in memory, so it can be changed. The batch is compiled into the program."),
};

function training(place) {
  const find = (parts) => place.querySelector(parts), tasks = JSON.parse(find("script").textContent);
  const { task, level } = find("form").elements, said = find(".said"), button = find("button");
  const [course, yours] = ["course", "yours"].map((row) => [...find(`tr.${row}`).querySelectorAll("td")]);
  const orders = {}, records = {}; // of each task: its rows' orders, and the curve of the course's own settings
  let turn = 0, waiting = 0, chosen, drawn, record;

  const tell = (cell, number) => cell.replaceChildren(short(number), " ", element("code", { textContent: hex(number) }));
  const draw = () => drawn && drawCurve(find(".curve"), { ...drawn, record: records[task.value] });
  const own = () => chosen.rate === tasks[task.value].rate && chosen.batch === tasks[task.value].batch;

  /* What is chosen decides the axes and the record to compare with; a run that has begun ends. */
  function choose(rate, batch) {
    turn++;
    place.losses = null;
    const { rows, epochs, span, loss, record: digits } = tasks[task.value];
    chosen = { rows, rate, batch };
    drawn = { points: [], ended: null, epochs, steps: (rows / batch) * epochs, span, loss };
    record = own() ? numberOf(digits) : null;
  }

  /* Nothing is trained yet: the course's row, and room for yours. */
  function clear() {
    const told = tasks[task.value];
    tell(course[0], numberOf(told.record));
    course[1].textContent = told.times[level.value];
    yours[0].replaceChildren("·");
    yours[1].replaceChildren("·");
    showBits(find(".bits"), record === null ? null : bitsOf(record), null);
    find(".curve").setAttribute("aria-label", say("the loss: not trained yet"));
    draw();
  }

  /* A slider trains while it moves: what is drawn stays until the next curve begins. */
  function sliders() {
    const { rate, batch, rates, batches } = tasks[task.value];
    const made = [["learning rate", rates, rate], ["batch", batches, batch]].map(([name, values, own]) => {
      const shown = values.map((value) => (value === own ? say("{value} (the course)", { value }) : String(value)));
      return slider(say(name), shown, values.indexOf(own), (k) => {
        choose(...(name === "batch" ? [chosen.rate, values[k]] : [values[k], chosen.batch]));
        cancelAnimationFrame(waiting);
        waiting = requestAnimationFrame(() => begin(Infinity));
      });
    });
    made[0].querySelector("input").disabled = "23".includes(level.value);
    made[1].querySelector("input").disabled = level.value !== "1";
    find(".sliders").replaceChildren(...made);
    find(".why").textContent = WHY[level.value];
    button.disabled = level.value === "2";
    said.textContent = button.disabled ? say("Level 2 does not train in a browser. The other four do.") : place.dataset.said;
    choose(rate, batch);
    clear();
  }

  /* It diverges if the last epoch is worse than the untrained weights were: larger than their loss, the first. */
  function verdict(last, steps, first, mean) {
    const { rate, batch } = tasks[task.value], finite = Number.isFinite(last);
    const many = steps.toLocaleString("en"), changed = [chosen.rate !== rate && say("learning rate"), chosen.batch !== batch && say("batch")];
    const others = changed.filter(Boolean).join(say(" and ")), from = short(first), to = short(last);
    if (!finite) return say("It diverges: at step {many} the loss is larger than 64 bits can hold. Choose a smaller learning rate.", { many });
    if (mean > first) return say("It diverges: the loss rises from {from} to {to}. Choose a smaller learning rate.", { from, to });
    if (others) return say("Another {others}: another number, {to}. There is no record to compare it with.", { others, to });
    const unequal = [...bitsOf(last)].flatMap((bit, k) => (bit === bitsOf(record)[k] ? [] : [k + 1]));
    return say("The last of {many} losses is {to}. ", { many, to })
      + (unequal.length ? say("Of its 64 bits these differ from the course's: {bits}.", { bits: unequal.join(", ") }) : say("All 64 bits are equal to the course's."));
  }

  async function programs() {
    if (typeof PROGRAMS !== "undefined") return true;
    await new Promise((resolve) => document.head.append(element("script", { src: place.dataset.file, onload: resolve, onerror: resolve })));
    if (typeof PROGRAMS !== "undefined") return true;
    said.textContent = say("The programs are not here: {file} cannot be read.", { file: place.dataset.file });
    return false;
  }

  /* Train what is chosen, at most `speed` epochs before each picture. */
  async function train(speed) {
    const mine = turn, { epochs, steps, points } = drawn, losses = new Float64Array(steps);
    if (!(await programs()) || turn !== mine) return;
    const order = (orders[task.value] ??= shuffler(chosen.rows));
    const { epoch, measured } = await trainer(PROGRAMS[task.value], level.value, chosen, order);
    let done = 0, last = 0;
    while (done < steps && Number.isFinite(last)) {
      await new Promise(requestAnimationFrame);
      if (turn !== mine) return;
      const until = performance.now() + 12; // so that a slow telephone, too, draws while it trains
      for (let k = 0; k < speed && done < steps && Number.isFinite(last) && performance.now() < until; k++) {
        const found = epoch();
        losses.set(found, done);
        done += found.length;
        last = found.at(-1);
        if (Number.isFinite(last)) points.push([found.reduce((sum, loss) => sum + loss, 0) / found.length, Math.min(...found), Math.max(...found)]);
      }
      const named = { name: tasks[task.value].name, level: level.value, steps: steps.toLocaleString("en") };
      if (done < steps) said.textContent = say("Training {name} by the program of level {level}: {steps} steps.", named);
      tell(yours[0], last);
      showBits(find(".bits"), record === null ? null : bitsOf(record), bitsOf(last));
      draw();
    }
    drawn.ended = last;
    if (own()) records[task.value] = points;
    draw();
    if (!Number.isFinite(last)) done = losses.findIndex((loss) => !Number.isFinite(loss)) + 1;
    place.losses = losses.slice(0, done); // all of them, for whoever looks closer
    const end = Number.isFinite(last) ? short(last) : say("more than 64 bits can hold");
    const ways = { from: short(losses[0]), end, steps: done.toLocaleString("en") };
    find(".curve").setAttribute("aria-label", last < losses[0]
      ? say("the loss falls from {from} to {end} in {steps} steps", ways) : say("the loss rises from {from} to {end} in {steps} steps", ways));
    said.textContent = verdict(last, done, losses[0], points.at(-1)?.[0]);
    const time = await measured();
    if (turn === mine) yours[1].textContent = `${short(time, 2)} µs`;
  }

  function begin(speed) {
    train(speed).catch((error) => { said.textContent = say("It cannot train here: {why}", { why: error.message }); });
  }

  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    choose(chosen.rate, chosen.batch);
    clear();
    begin(drawn.epochs / 100);
  });
  for (const each of [task, level]) each.addEventListener("change", sliders);
  new ResizeObserver(draw).observe(find(".curve"));
  place.dataset.said = said.textContent;
  find(".run").hidden = false;
  sliders();
  if (typeof WebAssembly !== "object") {
    for (const each of place.querySelectorAll("button, select, input")) each.disabled = true;
    said.textContent = say("This browser has no WebAssembly, so it cannot run the programs. On your own computer the notebooks run them.");
  }
}

document.querySelectorAll(".train").forEach(training);
