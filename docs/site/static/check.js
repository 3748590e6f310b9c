/* A second checker of privacy statements, in plain JavaScript: docs/statement_spec.md says what it
   does. It shares no code with the library, asks nothing of a server, and sends nothing anywhere. */
"use strict";
const M = Math, INF = Infinity, E = M.exp, X = M.expm1, L = M.log, P1 = M.log1p, Q = M.sqrt;
const SLACK = 1e-9, ON_A_GRID = 1e-3, CELLS = 1 << 18, EPS = 2 ** -50;
class Malformed extends Error {}
class Unpriced extends Error {}
const sum = a => a.reduce((s, v) => s + v, 0), range = n => Array.from({length: n}, (_, k) => k);
const least = a => a.reduce((x, y) => M.min(x, y), INF), most = a => a.reduce((x, y) => M.max(x, y), -INF);
const memo = (f, cache = new Map()) => (...given) => {
  const key = JSON.stringify(given, (_, v) => v === INF ? "inf" : v);
  if (!cache.has(key)) cache.set(key, f(...given));
  return cache.get(key);
};

/* ---- reading: section 2 */
function parse(text) {
  const bad = () => { throw new Malformed("no JSON that is read here"); };
  if ([...text].length > 2 ** 26) bad();
  let names = 0, found;
  try { found = JSON.parse(text); } catch { bad(); }
  const walk = (v, depth) => {
    if (depth > 200 || (typeof v === "number" && !isFinite(v)) || (typeof v === "string" && /\p{Cs}/u.test(v))) bad();
    if (v === null || typeof v !== "object") return v;
    if (Array.isArray(v)) return v.map(one => walk(one, depth + 1));
    const pairs = Object.entries(v).map(([name, one]) => [walk(name, depth), walk(one, depth + 1)]);
    names += pairs.length;
    return Object.assign(Object.create(null), Object.fromEntries(pairs));
  };
  const out = walk(found, 0), bare = text.replace(/"(?:[^"\\]|\\.)*"/g, '""');  // without what is inside of texts
  if ((bare.match(/:/g) ?? []).length !== names) bad();  // a name twice
  if ((bare.match(/-?\d[\d.eE+-]*/g) ?? []).some(n => /^-?\d+$/.test(n) && BigInt(n.replace("-", "")) > 2n ** 53n)) bad();
  return out;
}
const line = v => typeof v === "string" && /\S/.test(v.replace(/ /g, "")) && !/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(v);
const isObject = v => v !== null && typeof v === "object" && !Array.isArray(v);
function shaped(v, s, root) {
  const no = () => { throw new Malformed("not of the schema's shape"); };
  if (s.$ref) s = root.$defs[s.$ref.split("/").pop()];
  if (s.anyOf) {
    for (const one of s.anyOf) try { return shaped(v, one, root); } catch (e) { if (!(e instanceof Malformed)) throw e; }
    no();
  }
  if (s.oneOf) return shaped(v, s.oneOf.find(one => isObject(v) && one.properties.kind.const === v.kind) ?? no(), root);
  if ("const" in s && v !== s.const) no();
  if (s.enum && !s.enum.includes(v)) no();
  if (s.type === "object") {
    const known = s.properties ?? {};
    if (!isObject(v) || (s.required ?? []).some(name => !(name in v))) no();
    for (const name of Object.keys(v)) {
      const own = Object.hasOwn(known, name) ? known[name] : s.additionalProperties;
      if (!own || !line(name)) no();
      shaped(v[name], own, root);
    }
  } else if (s.type === "array") {
    if (!Array.isArray(v) || v.length < (s.minItems ?? 0)) no();
    v.forEach(one => shaped(one, s.items, root));
  } else if (s.type === "string") {
    if (!line(v) || (s.pattern && !new RegExp(s.pattern, "u").test(v))) no();
  } else if (s.type === "number" || s.type === "integer") {
    if (typeof v !== "number" || (s.type === "integer" && v !== M.trunc(v))) no();
    if (v < (s.minimum ?? -INF) || v > (s.maximum ?? INF)) no();
    if (v <= (s.exclusiveMinimum ?? -INF) || v >= (s.exclusiveMaximum ?? INF)) no();
  } else if ((s.type === "null" && v !== null) || (s.type === "boolean" && typeof v !== "boolean")) no();
}
const GAUSSIANS = ["gaussian", "per-cell"], NOISE = [...GAUSSIANS, "laplace", "discrete-laplace"];
const within = e => e.kind === "composed" ? e.events : "event" in e ? [e.event] : [];
const madeOf = (e, kinds) => ["composed", "repeated"].includes(e.kind) ? within(e).every(one => madeOf(one, kinds)) : kinds.includes(e.kind);
const partCount = e => e.kind === "composed" ? sum(e.events.map(partCount)) : e.kind === "repeated" ? partCount(e.event) * e.count : 1;
function sound(e) {
  within(e).forEach(sound);
  const no = () => { throw new Malformed("an event that cannot be"); };
  if (e.kind === "per-cell") {
    const more = e.crossings?.length ? e.crossings : e.spreads;
    if (e.multipliers.some(row => row.length !== e.multipliers[0].length)) no();
    if (e.multipliers.length !== e.spreads.length || more.length !== e.spreads.length) no();
    e.crossings = e.crossings ?? []; e.column = e.column ?? 0;
  }
  if (e.kind === "on-part" && (e.part >= e.parts || !madeOf(e.event, [...NOISE, "no-op"]))) no();
  if (e.kind === "visibly-sampled" && !madeOf(e.event, [...GAUSSIANS, "no-op"])) no();
  if (e.kind === "poisson-sampled" && (partCount(e.event) > 65536 || !madeOf(e.event, GAUSSIANS))) no();
  if (e.kind === "poisson-sampled" && e.spreads !== null && e.spreads.length !== partCount(e.event)) no();
  if (e.kind === "private-selection" && e.shape !== "inf" && e.mean < 1) no();
  if (e.shape === "inf") e.shape = INF;
}
const canonical = v => Array.isArray(v) ? `[${v.map(canonical).join()}]` : isObject(v)
  ? `{${Object.keys(v).sort().map(name => JSON.stringify(name) + ":" + canonical(v[name])).join()}}` : JSON.stringify(v);
const bytes = text => new TextEncoder().encode(text);
async function sha256(content) {
  const found = await crypto.subtle.digest("SHA-256", content);
  return "sha256:" + [...new Uint8Array(found)].map(b => b.toString(16).padStart(2, "0")).join("");
}

/* ---- what was done: section 4.1 */
const key = e => JSON.stringify(e, (_, v) => v === INF ? "inf" : isObject(v) ? Object.fromEntries(Object.keys(v).sort().map(name => [name, v[name]])) : v);
const same = (a, b) => key(a) === key(b);
class Counts extends Map {
  add(e, times) { const k = key(e); this.set(k, [e, times + (this.get(k)?.[1] ?? 0)]); }
}
function count(e, times, into, parted, nb) {
  const next = (one, more = 1, where = into) => count(one, times * more, where, parted, nb);
  if (nb === "add-remove" && ((e.kind === "visibly-sampled" && e.rate < 1) || (e.kind === "on-part" && e.parts > 1))) throw new Unpriced();
  if (e.kind === "composed") e.events.forEach(one => next(one));
  else if (e.kind === "repeated") { if (e.count) next(e.event, e.count); }
  else if (e.kind === "on-part") {
    const name = e.parts + "/" + e.part;
    if (e.parts > 1 && !parted.has(name)) parted.set(name, [e.parts, new Counts()]);
    next(e.event, 1, e.parts === 1 ? into : parted.get(name)[1]);
  } else if (e.kind === "visibly-sampled" && e.rate === 1) next(e.event);
  else if (e.kind === "approximate" && e.delta === 0) { if (e.epsilon > 0) into.add({kind: "pure", epsilon: e.epsilon}, times); }
  else if (e.kind !== "no-op" && !("event" in e && isFree(e.event, nb))) into.add(e, times);
}
function isFree(e, nb) {
  const counts = new Counts(), parted = new Map();
  count(e, 1, counts, parted, nb);
  return !counts.size && [...parted.values()].every(([, used]) => !used.size);
}
function inventory(e, nb) {
  const open = one => one.kind === "non-private" || (["composed", "repeated", "visibly-sampled", "private-selection"].includes(one.kind) && within(one).some(open));
  const counts = new Counts(), parted = new Map(), largest = new Map();
  count(e, 1, counts, parted, nb);
  for (const [parts, used] of parted.values()) for (const [k, [leaf, times]] of used) {
    const name = parts + k, before = largest.get(name)?.[1] ?? 0;
    largest.set(name, [leaf, M.max(before, times)]);
  }
  for (const [leaf, times] of largest.values()) counts.add(leaf, times);
  const all = [...counts.values()], cells = all.filter(([leaf]) => leaf.kind === "per-cell");
  let square = sum(byColumn(cells).map(group => worst(group, nb))), isPrivate = true;
  const others = [];
  for (const [leaf, times] of all) {
    const own = gaussianSquare(leaf, nb);
    if (leaf.kind === "per-cell") continue;
    if (own !== null) square += times * own;
    else if (open(leaf)) isPrivate = false;
    else others.push([leaf, times]);
  }
  if (others.length > 1000) throw new Unpriced();
  return {square, others, isPrivate};
}
function gaussianSquare(e, nb) {
  if (e.kind === "gaussian") return e.noise_multiplier ** -2;
  if (e.kind !== "poisson-sampled") return null;
  const [alone, replaced] = batch(e, nb);
  return replaced === 0 || e.rate === 1 ? (replaced ?? alone) ** 2 : null;
}
function byColumn(releases) {
  const out = new Map();
  for (const one of releases) {
    const name = one[0].column + "/" + one[0].multipliers[0].length;
    out.set(name, [...(out.get(name) ?? []), one]);
  }
  return [...out.values()];
}
function pairsOf(releases, cell, nb) {
  const rows = releases.flatMap(([e, t]) => e.multipliers.map((m, j) => [m, e.spreads[j], e.crossings[j] ?? 0, t]));
  if (nb === "add-remove") return [sum(rows.map(([m, , , t]) => t / m[cell] ** 2))];
  if (rows.length * rows[0][0].length ** 2 > 4e6) throw new Unpriced();
  return rows[0][0].map((_, other) => sum(rows.map(([m, s, x, t]) => {
    const a = 1 / m[cell], b = 1 / m[other];
    return t * (other === cell ? (s * a) ** 2 : a * a + b * b + 2 * x * a * b);
  })));
}
const worst = (releases, nb) => most(releases[0][0].multipliers[0].map((_, cell) => most(pairsOf(releases, cell, nb))));
const partsOf = e => e.kind === "composed" ? e.events.flatMap(partsOf) : e.kind === "repeated"
  ? range(e.count && partsOf(e.event).length ? e.count : 0).flatMap(() => partsOf(e.event)) : [e];
function joint(parts, nb) {
  const cells = new Counts(), squares = parts.filter(([e]) => e.kind === "gaussian").map(([e, spread]) => (spread / e.noise_multiplier) ** 2);
  for (const [e] of parts) if (e.kind === "per-cell") cells.add(e, 1);
  return Q(sum(squares) + sum(byColumn([...cells.values()]).map(group => worst(group, nb))));
}
function batch(e, nb) {
  const parts = partsOf(e.event), alone = joint(parts.map(one => [one, 1]), "add-remove");
  if (nb === "add-remove") return [alone, null];
  const replaced = joint(parts.map((one, j) => [one, e.spreads ? e.spreads[j] : 2]), "replace-one");
  return [alone, M.min(replaced, 2 * alone)];
}

/* ---- profiles: section 4.3 */
function tail(x) {  // P(Z > x) of a standard normal Z, as a logarithm
  if (x < 2) {
    let term = M.abs(x), total = term;
    for (let k = 3; term > total * 1e-18 && k < 400; k += 2) total += term *= x * x / k;
    const half = x < -12 ? 0.5 : E(-x * x / 2) / Q(2 * M.PI) * total;
    return L(x < 0 ? 0.5 + half : 0.5 - half);
  }
  let below = x;
  for (let k = x < 6 ? 300 : 60; k; k--) below = x + k / below;
  return -x * x / 2 - L(2 * M.PI) / 2 - L(below);
}
const less = (a, b) => E(a) * -X(M.min(b - a, 0) - EPS * (1 + M.abs(a)));
const logSum = (a, b) => M.max(a, b) === -INF ? -INF : M.max(a, b) + P1(E(M.min(a, b) - M.max(a, b)));
function halved(tooLow, low, high) {  // where a monotone condition ends, from above
  for (let k = 0; k < 200; k++) { const x = (low + high) / 2; if (tooLow(x)) low = x; else high = x; }
  return high;
}
const gaussianDelta = (e, mu) => mu > 0 && e / mu < 1e8 ? less(tail(e / mu - mu / 2), e + tail(e / mu + mu / 2)) : 0;
function gaussianEpsilon(mu, delta) {
  if (mu === 0 || gaussianDelta(0, mu) <= delta) return 0;
  if (delta <= 0) return INF;
  return halved(e => gaussianDelta(e, mu) > delta, 0, mu * mu / 2 + mu * Q(-2 * L(delta)) + 1e-12);
}
function discreteLaplace(scale, shift) {
  const t = 1 / scale, ends = 1 / (1 + E(-t)), size = M.max(1, M.ceil((shift - 1) / 256)), out = [[shift * t, ends]];
  for (let x = 1; x < shift; x += size)
    out.push([(shift - 2 * x) * t, M.tanh(t / 2) * E(-x * t) * X(-M.min(size, shift - x) * t) / X(-t)]);
  return [...out, [-shift * t, E(-shift * t) * ends]];
}
const both = (f, top = INF) => ({forward: f, backward: f, top});
const gaussian = mu => both(e => gaussianDelta(e, mu));
function lattice(e) {
  const atoms = discreteLaplace(e.noise_multiplier * e.sensitivity, e.sensitivity);
  return both(x => sum(atoms.filter(([l]) => l > x).map(([l, p]) => p * -X(x - l))), atoms[0][0]);
}
const pure = (eps, delta = 0) => both(e => delta + (1 - delta) * -X(M.min(e - eps, 0)) / (1 + E(-eps)), eps);
function sampled(e, nb) {
  const q = e.rate, [c, d] = batch(e, nb), base = x => gaussianDelta(x, c);
  if (d === null) return {forward: e => q * base(e < 30 ? P1(X(e) / q) : e - L(q) + P1(-(1 - q) * E(-e))), backward: e => {
    const rest = q - (1 - q) * X(M.min(e, 700));
    return rest > 0 ? rest * base(M.max(e + L(q / rest), 0)) : 0;
  }, top: INF};
  const k = q < 1 ? P1(-q) - L(q) : -INF;
  return both(e => {
    const first = e > 0 ? k + e + L(-X(-e)) : -INF, one = first - c * c / 2, two = e - d * d / 2;
    let t = M.min(-two / d, -one / c);
    for (let n = 0; n < 40; n++) {
      const a = one + c * t, b = two + d * t, total = logSum(a, b), step = total / (c * E(a - total) + d * E(b - total));
      t -= step;
      if (M.abs(step) <= 1e-13 * M.abs(t)) break;
    }
    return q * less(tail(-t), logSum(first + tail(c - t), e + tail(d - t)));
  });
}
const place = (points, e) => {  // how many points are at most e
  let low = 0, high = points.length;
  while (low < high) { const k = (low + high) >> 1; if (points[k] <= e) low = k + 1; else high = k; }
  return low;
};
const ORDERS = range(441).map(k => 1 + 1e-4 * 10 ** (k * 11 / 440));
const falls = values => values.map((v, k) => (ORDERS[k] - 1) * (v + P1(-1 / ORDERS[k])) - L(ORDERS[k]));
const fallen = (known, e) => E(M.min(0, least(known.map((f, k) => f - (ORDERS[k] - 1) * e))));
const profile = memo((e, nb) => {
  if (e.kind === "poisson-sampled") return sampled(e, nb);
  if (e.kind === "exponential") return both(x => X(M.min(x - e.epsilon, 0) / 2) ** 2 / -X(-e.epsilon), e.epsilon);
  if (e.kind === "pure" || e.kind === "approximate") return pure(e.epsilon, e.delta);
  if (e.kind === "laplace") return both(x => -X(M.min(x - 1 / e.noise_multiplier, 0) / 2), 1 / e.noise_multiplier);
  if (e.kind === "discrete-laplace") return lattice(e);
  const mu = Q(inventory(e.event, nb).square);  // of what can be seen
  return both(x => e.rate * gaussianDelta(x, mu));
});

/* ---- moments: section 4.5 */
function choice(eps, a) {
  const x = (a - 1) * eps, cap = M.min(eps, a * eps * eps / 8);
  if (x > 600 || eps < 1e-7) return cap;
  const below = M.max(-eps, M.min(0, L((a - 1) * X(-a * eps) / (a * X(-x)))));
  const p = M.max(0, M.min(1, -X(below) / -X(-eps)));
  const moment = p * X(M.min((a - 1) * (eps + below), 600)) + (1 - p) * X((a - 1) * below);
  return M.min(cap, P1(M.max(0, moment)) / (a - 1) + 2e-15 * eps);
}
function logMoment(atoms, step) {
  const some = atoms.filter(([, p]) => p > 0), top = step * most(some.map(([l]) => l));
  if (top < 600) return P1(M.max(0, sum(some.map(([l, p]) => p * X(step * l)))));
  return top + L(sum(some.map(([l, p]) => p * E(step * l - top))));
}
const at = order => order === null ? ORDERS : [order];
const moments = memo((e, nb, order = null) => {
  const each = (f, leak = 0) => ({values: at(order).map(f), leak});
  if (e.kind === "zero-concentrated") return each(a => a * e.rho);
  if (e.kind === "exponential") return each(a => choice(e.epsilon, a));
  if (!["private-selection", "visibly-sampled"].includes(e.kind)) {  // from the profile; a bound in closed form beside it
    const one = profile(e, nb), {pairs, leak} = uneven(one), [alone, replaced] = e.kind === "poisson-sampled" ? batch(e, nb) : [INF, null];
    const bound = a => M.min(one.top, a * M.min(one.top, replaced ?? alone) ** 2 / 2);
    return each(a => M.min(bound(a), most(pairs.map(p => logMoment(p, a - 1) / (a - 1)))), leak);
  }
  const selected = e.kind === "private-selection", {values, leak} = totalMoments(inventory(e.event, nb), nb, selected ? null : order);
  if (!selected) {
    const q = e.rate, mixed = x => x < 30 ? P1(q * X(x)) : q === 1 ? x : logSum(x + L(q), P1(-q));
    return {values: at(order).map((a, k) => mixed((a - 1) * values[k]) / (a - 1)), leak: q * leak};
  }
  const whole = selection(values, e.mean, e.shape), near = order === null ? 0 : nearest(order);
  return {values: order === null ? whole : [whole[near]], leak: M.min(1, e.mean * leak)};
});
const nearest = order => ORDERS.reduce((best, a, k) => M.abs(a - order) < M.abs(ORDERS[best] - order) ? k : best, 0);
function selection(values, mean, shape) {
  let out;
  if (shape === INF) {
    const known = falls(values);
    out = values.map((v, k) => v + mean * fallen(known, P1(1 / (ORDERS[k] - 1))) + M.max(0, L(mean)) / (ORDERS[k] - 1));
  } else {
    let low = -L(2 * (shape + 2) * mean) - 60, high = 0;
    const runs = g => {
      const down = -X(g) * E(-g);
      return g === 0 ? 1 : shape * -g < 1e-12 ? down / -g : down * shape / -X(shape * g);
    };
    for (let k = 0; k < 200; k++) { const g = (low + high) / 2; if (runs(g) > mean) low = g; else high = g; }
    const other = (1 + shape) * least(values.map((v, k) => (1 - 1 / ORDERS[k]) * v - low / ORDERS[k]));
    out = values.map((v, k) => v + other + L(mean) / (ORDERS[k] - 1));
  }
  for (let k = out.length - 2; k >= 0; k--) out[k] = M.min(out[k], out[k + 1]);
  return out;
}
function totalMoments(total, nb, order = null) {
  let values = at(order).map(a => a * total.square / 2), leak = 0;
  for (const [e, times] of total.others) {
    const more = moments(e, nb, order);
    values = values.map((v, k) => v + times * more.values[k]);
    leak += times * more.leak;
  }
  return {values, leak};
}
const converted = (values, orders, delta) => M.max(0, least(values.map((v, k) => v + P1(-1 / orders[k]) - (L(delta) + L(orders[k])) / (orders[k] - 1))));

/* ---- losses on a grid: section 4.4 */
function reach(f, bound, top) {
  let high = 1e-9;
  while (high < M.min(1e9, top) && f(high) > bound) high *= 4;
  if (high >= top) return M.max(top, 1e-9);
  let low = high / 4;
  while (high - low > 1e-2 * high) { const e = (low + high) / 2; if (f(e) > bound) low = e; else high = e; }
  return high;
}
function connect(points, one, ends) {  // both directions: masses at losses number low, low + 1, ..., and what is lost
  const ways = sides(one).map((f, k) => points.slice(0, ends[k] + 1).map(f)), start = M.max(ways[0][0], ways[1][0]);
  const rising = values => {
    const down = values.slice(), mass = new Array(values.length).fill(0);
    for (let k = down.length - 2; k >= 0; k--) down[k] = M.max(down[k], down[k + 1]);
    down[0] = start;
    for (let k = 0; k + 1 < down.length; k++) {
      const fall = down[k] - down[k + 1], width = M.min(points[k + 1] - points[k], 700);
      mass[k + 1] += fall / -X(-width); mass[k] -= fall / X(width);
    }
    return mass;
  };
  const all = ways.map(rising), middle = M.max(0, 1 - start + all[0][0] + all[1][0]);
  const above = all.map(mass => mass.slice(1).map(p => M.max(0, p)));
  return [0, 1].map(k => {
    const below = above[1 - k].map((p, n) => p * E(-points[n + 1])).reverse();
    return {low: -below.length, mass: [...below, middle, ...above[k]], never: ways[k].at(-1)};
  });
}
const sides = one => [one.forward, one.backward];
function uneven(one) {
  const ends = sides(one).map(f => reach(f, 1e-200, one.top)), far = M.max(...ends), scale = M.min(Q(variance(one, 1e-20)), far);
  const low = 1e-4 * scale, high = 1.001 * far;
  const all = [...range(1200).map(k => M.min(8 * scale, far) * k / 1199), ...range(1200).map(k => low * (high / low) ** (k / 1199))];
  const points = [...new Set(all)].sort((a, b) => a - b), loss = k => M.sign(k) * points[M.abs(k)];
  const both = connect(points, one, ends.map(end => place(points, end)));
  return {pairs: both.map(({low, mass}) => mass.map((p, k) => [loss(low + k), p])), leak: M.max(both[0].never, both[1].never)};
}
function variance(one, bound) {
  const end = M.max(...sides(one).map(f => reach(f, bound, one.top)));
  const points = [0, ...range(300).map(k => end * 10 ** (6 * (k / 299 - 1)))], [a, b] = sides(one).map(f => points.map(f));
  return 2 * M.max(...[[a, b], [b, a]].map(([x, y]) => {
    const v = points.map((e, k) => x[k] + E(-e) * y[k]);
    return sum(range(300).map(k => (points[k + 1] - points[k]) * (v[k] + v[k + 1]) / 2));
  }));
}
function onGrid(one, step, bound, count) {
  const ends = sides(one).map(f => M.max(1, M.ceil(reach(f, bound, one.top) / step)));
  const sizes = ends.map(n => n * step >= one.top || n * step < one.top - step ? n : n + 1);
  return connect(range(M.max(...sizes) + 1).map(k => k * step), one, sizes).map(way => ({...way, count}));
}
function cumulant(parts, step, tilt) {
  return sum(parts.map(({low, mass, count}) => {
    const top = tilt * step * (tilt > 0 ? low + mass.length - 1 : low);
    const inner = mass.reduce((s, p, k) => p > 0 ? s + p * E(tilt * step * (low + k) - top) : s, 0);
    return count * (top + (inner > 0 ? L(inner) : -745));
  }));
}
function transform(re, im, way) {  // in place, of a power of two of values
  const n = re.length;
  for (let k = 1, j = 0; k < n; k++) {
    let bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (k < j) { [re[k], re[j]] = [re[j], re[k]]; [im[k], im[j]] = [im[j], im[k]]; }
  }
  const cos = range(n / 2).map(k => M.cos(2 * M.PI * k / n)), sin = range(n / 2).map(k => way * M.sin(2 * M.PI * k / n));
  for (let size = 2; size <= n; size *= 2) for (let start = 0; start < n; start += size) for (let k = 0; k < size / 2; k++) {
    const c = cos[k * n / size], s = sin[k * n / size], a = start + k, b = a + size / 2;
    const x = re[b] * c - im[b] * s, y = re[b] * s + im[b] * c;
    re[b] = re[a] - x; im[b] = im[a] - y; re[a] += x; im[a] += y;
  }
}
function composedEpsilon(parts, step, delta, width) {
  let room = delta - sum(parts.map(p => p.never * p.count));
  if (room <= 0) return INF;
  const about = tilt => cumulant(parts, step, tilt), counts = parts.map(p => p.count);
  const scale = M.max(step, width), steep = M.max(M.min(1e3 / scale, 30 / step), 2e-3 / scale);
  const best = (list, cost) => list.reduce((b, x) => { const c = cost(x); return c < b[1] ? [x, c] : b; }, [list[0], INF])[0];
  const tilts = range(25).map(k => 1e-3 / scale * (steep * scale * 1e3) ** (k / 24));
  const tilt = best(tilts, t => (about(t) - L(delta) + t * L(t / (t + 1)) - L(t + 1)) / t);
  const turns = range(9).map(k => 1e-2 * 10 ** (k / 2) / scale), base = about(tilt);
  const turn = best(turns, t => (about(tilt + t) - base + 35) / t);
  const highest = sum(parts.map(p => p.count * (p.low + p.mass.length - 1))), lowest = sum(parts.map(p => p.count * p.low));
  const here = base, there = about(tilt + turn);
  const high = M.min(highest, M.ceil((there - here + 35) / turn / step) + 1);
  const under = -least(turns.map(t => (about(tilt - t) - base + 35) / t));
  const low = M.max(lowest, M.min(M.floor(under / step) - 1, high - 1));
  if (high - low + 1 > CELLS) return null;
  const n = 2 ** M.ceil(M.log2(high - low + 1));
  if (high < highest) room -= E(M.min(0, there - (tilt + turn) * high * step));
  if (room <= 0) return INF;
  const re = new Float64Array(n).fill(1), im = new Float64Array(n);
  for (const part of parts) {
    const own = cumulant([part], step, tilt) / part.count, a = new Float64Array(n), b = new Float64Array(n);
    part.mass.forEach((p, k) => { if (p > 0) a[(((part.low + k) % n) + n) % n] += p * E(tilt * step * (part.low + k) - own); });
    transform(a, b, -1);
    for (let k = 0; k < n; k++) for (let c = part.count, x = a[k], y = b[k]; c; c = M.floor(c / 2)) {
      if (c % 2) [re[k], im[k]] = [re[k] * x - im[k] * y, re[k] * y + im[k] * x];
      [x, y] = [x * x - y * y, 2 * x * y];
    }
  }
  const size = re.reduce((s, x, k) => s + M.hypot(x, im[k]), 0) / n;
  const off = EPS * (sum(counts) + 1) * (M.log2(n) + 4) * size, share = L(room) - here;
  transform(re, im, 1);
  let beyond = 0, weighed = 0;
  for (let cell = high; cell >= low; cell--) {
    const loss = cell * step, asked = E(M.min(700, share + tilt * loss));
    if (beyond - weighed > asked) return M.max(0, M.min(loss + L((beyond - asked) / weighed), loss + step));
    if (loss <= 0) return 0;
    const mass = M.max(0, re[((cell % n) + n) % n] / n) + off;
    beyond = (beyond + mass) * E(-tilt * step); weighed = (weighed + mass) * E(-(tilt + 1) * step);
  }
  return M.max(0, low * step);
}
function byLosses(total, delta, nb) {
  let uses = total.others.map(([e, times]) => [profile(e, nb), times]);
  if (total.square > 0) uses.push([gaussian(Q(total.square)), 1]);
  uses = uses.filter(([one]) => one.forward(0) > 0 || one.backward(0) > 0);
  if (!uses.length) return 0;
  const times = sum(uses.map(([, n]) => n)), bound = M.max(delta * 1e-7 / times, 1e-280);
  const spread = sum(uses.map(([one, n]) => n * variance(one, bound)));
  const ends = uses.flatMap(([one]) => sides(one).map(f => reach(f, bound, one.top))), far = M.max(...ends);
  let step = M.max(M.min(0.02 * Q(spread / times), 7e-4 * Q(spread)), far / CELLS, 1e-12);
  const top = least(uses.map(([one]) => one.top).filter(x => x <= far));
  if (top < INF && top > step) step = top / M.ceil(top / step) * (1 + 2 ** -52);
  for (; step < 1e6; step *= 1.5) {
    if (sum(ends) / step > 16 * CELLS) step = sum(ends) / CELLS / 16;
    const grids = uses.map(([one, n]) => onGrid(one, step, bound, n)), symmetric = uses.every(([one]) => one.forward === one.backward);
    const found = (symmetric ? [0] : [0, 1]).map(way => composedEpsilon(grids.map(pair => pair[way]), step, delta, Q(spread)));
    if (!found.includes(null)) return M.max(...found);
  }
  return INF;
}

/* ---- the price: section 4.2 */
function addition(total, nb) {
  const single = e => {
    if (e.kind === "pure" || e.kind === "exponential" || e.kind === "approximate") return [e.epsilon, e.delta ?? 0];
    if (e.kind === "laplace" || e.kind === "discrete-laplace") return [1 / e.noise_multiplier, 0];
    if (e.kind !== "private-selection") return [INF, 0];
    const [eps, leak] = addition(inventory(e.event, nb), nb);
    return [e.shape === INF || leak ? INF : (2 + e.shape) * eps, 0];
  };
  if (total.square > 0) return [INF, 0];
  const all = total.others.map(([e, times]) => [...single(e), times]);
  return all.some(([eps]) => eps === INF) ? [INF, 0] : [sum(all.map(([eps, , n]) => n * eps)), sum(all.map(([, d, n]) => n * d))];
}
const BY_MOMENTS = ["zero-concentrated", "private-selection"];
const price = memo((e, delta, nb) => {
  const total = inventory(e, nb);
  if (!total.isPrivate) return [INF, false];
  if (!total.others.length) return [gaussianEpsilon(Q(total.square), delta), false];
  const [plain, leak] = addition(total, nb), found = [];
  const best = delta * (1 + 1e-12) >= leak ? plain : INF;
  if (delta === 0) return [best, false];
  const kinds = total.others.map(([one]) => one.kind), known = !kinds.some(k => BY_MOMENTS.includes(k));
  if (!known || kinds.includes("exponential")) {
    const {values, leak} = totalMoments(total, nb);
    found.push(delta > leak ? converted(values, ORDERS, delta - leak) : INF);
  }
  if (known) found.push(byLosses(total, delta, nb));
  return M.min(...found) < best ? [M.min(...found), true] : [best, false];
});

/* ---- log and plan: section 4.9 */
function kept(e) {
  if (e.kind === "composed") {
    const events = e.events.map(kept).filter(one => one !== null);
    return events.length ? {kind: "composed", events} : null;
  }
  if (e.kind === "repeated") { const one = e.count ? kept(e.event) : null; return one && {...e, event: one}; }
  return e.kind === "no-op" ? null : e;
}
function* runs(e, times = 1) {
  if (e === null) return;
  if (e.kind === "repeated") yield* runs(e.event, times * e.count);
  else if (e.kind !== "composed") yield [e, times];
  else for (let k = 0; k < times; k++) for (const one of e.events) yield* runs(one);
}
function* sideBySide(log, plan) {
  const toCome = runs(kept(plan));
  let planned = null, left = 0;
  const next = count => { const found = toCome.next(); [planned, left] = found.done ? [null, count] : found.value; };
  for (let [done, count] of runs(kept(log))) while (count > 0) {
    if (left === 0) next(count);
    const step = M.min(count, left);
    yield [planned, done, step];
    count -= step; left -= step;
  }
  if (left === 0) next(0);
  if (left) yield [planned, null, left];
}
function noWorse(planned, done, nb) {
  return madeOf(planned, ["gaussian"]) && madeOf(done, ["gaussian", "per-cell"])
    && inventory(done, nb).square <= inventory(planned, nb).square * (1 + 1e-12);
}
const covers = memo((planned, done, nb) => {
  if (same(planned, done)) return true;
  const [a, b] = [planned.kind, done.kind];
  if (a === "poisson-sampled" && a === b && planned.rate === done.rate) {
    const [one, two] = [batch(planned, nb), batch(done, nb)];
    return one.every((mu, k) => mu === null || two[k] ** 2 <= mu ** 2 * (1 + 1e-12));
  }
  if (a === "visibly-sampled" && a === b && planned.rate === done.rate) return noWorse(planned.event, done.event, nb);
  if (a === "on-part" && a === b && planned.part === done.part && planned.parts === done.parts) return noWorse(planned.event, done.event, nb);
  return a === "gaussian" && b === "per-cell" && noWorse(planned, done, nb);
});
function isPrefix(log, plan, nb) {
  if (same(log, plan)) return true;
  let number = 0;
  for (const [planned, done] of sideBySide(log, plan)) {
    if (done === null) return true;
    if (number++ === 1e6 || planned === null || !covers(planned, done, nb)) return false;
  }
  return true;
}

/* ---- what is charged: sections 4.6 and 4.7 */
const inside = ([eps, grid], stated) => eps <= stated * (1 + (grid ? ON_A_GRID : SLACK));
function filtered(cap, s) {
  const total = inventory(s.events, s.nb), share = s.delta * (1 - cap.reserve);
  if (!total.isPrivate || s.budget === INF) return [INF, false];
  let eps, leak = 0, room = s.delta - share;
  if (cap.kind === "pure") { [eps, leak] = addition(total, s.nb); room = s.delta; }
  else if (cap.kind === "gaussian") {
    let square = total.square;
    for (const [one, times] of total.others) {
      const [own, lost] = addition({square: 0, others: [[one, 1]]}, s.nb);
      if (own === INF) throw new Unpriced();
      square += times * halved(mu => tail(mu / 2) > -logSum(0, own), 0, 2 * Q(2 * own + 4)) ** 2;
      leak += times * lost;
    }
    eps = gaussianEpsilon(Q(square), share);
  } else {
    if (cap.order === null || share <= 0) throw new Unpriced();
    const order = ORDERS[nearest(cap.order)];
    let values;
    ({values, leak} = totalMoments(total, s.nb, order));
    eps = converted(values, [order], share);
  }
  return [leak <= room * (1 + SLACK) ? eps : INF, cap.kind === "renyi"];
}
function lastApart(e) {
  if (e.kind === "composed") {
    const [before, after] = lastApart(e.events.at(-1));
    return [{kind: "composed", events: [...e.events.slice(0, -1), before]}, after];
  }
  if (e.kind !== "repeated") return [{kind: "no-op"}, e];
  const [before, after] = lastApart(e.event);
  return [{kind: "composed", events: [{...e, count: e.count - 1}, before]}, after];
}
function twoSteps(s) {
  const [before, after] = lastApart(kept(s.events) ?? {kind: "no-op"}), [one, two] = [inventory(before, s.nb), inventory(after, s.nb)];
  if ([one, two].some(t => t.isPrivate && !t.others.length && !t.square)) return price({kind: "composed", events: [before, after]}, s.delta, s.nb);
  let reference = {kind: "gaussian", noise_multiplier: (1 - 1e-15) / Q(two.square)};
  if (!two.isPrivate || two.others.length) {
    const [epsilon, leak] = addition(two, s.nb);
    if (!two.isPrivate || leak || epsilon === INF) throw new Unpriced();
    reference = {kind: "pure", epsilon};
  }
  const stays = sum(one.others.map(([e, t]) => e.kind === "approximate" ? t * P1(-e.delta) : 0));
  const lost = M.min(s.delta, M.max(0, -X(stays) * (1 - 1e-12)));
  return price({kind: "composed", events: [before, reference]}, lost + (s.delta - lost) / 2, s.nb);
}
function charge(s) {
  if (s.plan) return price(s.plan, s.delta, s.nb);
  if (!s.doc.cap) return [kept(s.events) ? INF : 0, false];
  const found = s.doc.cap.kind === "two-step" ? twoSteps(s) : filtered(s.doc.cap, s);
  return inside(found, s.budget) ? [s.budget, found[1]] : found;
}
function isRoute(route, s) {
  const {cap} = s.doc;
  if (cap && !s.plan) return route === (cap.kind === "two-step" ? "two steps" : `${cap.kind} filter`);
  if (s.epsilon === INF) return ["none", "Renyi"].includes(route);
  const total = inventory(s.plan ?? s.events, s.nb);
  if (!total.isPrivate) return true;
  if (total.others.length) return ["addition", "privacy-loss distribution", "Renyi"].includes(route);
  return route === (total.square ? "closed form" : "nothing read");
}

/* ---- groups: section 4.8 */
const perCell = e => e.kind === "per-cell" ? [e] : within(e).flatMap(perCell);
function seen(whole, cell, column, cells, nb) {
  const mine = new Counts(), isMine = e => e.kind === "per-cell" && e.column === column && e.multipliers[0].length === cells;
  const tally = (e, times) => {
    if (e.kind === "composed") e.events.forEach(one => tally(one, times));
    else if (e.kind === "repeated") tally(e.event, times * e.count);
    else if (isMine(e)) mine.add(e, times);
  };
  tally(whole, 1);
  const pairs = mine.size ? pairsOf([...mine.values()], cell, nb) : [0], other = pairs.indexOf(most(pairs));
  const gaussian = square => square > 0 ? {kind: "gaussian", noise_multiplier: 1 / Q(square)} : {kind: "no-op"};
  const view = e => {
    if (e.kind === "composed") return {...e, events: e.events.map(view)};
    if (e.kind === "repeated") return {...e, event: view(e.event)};
    if (["visibly-sampled", "private-selection", "on-part"].includes(e.kind)) return {...e, event: seen(e.event, cell, column, cells, nb)};
    if (e.kind !== "poisson-sampled") return isMine(e) ? gaussian(pairsOf([[e, 1]], cell, nb)[other]) : e;
    const parts = partsOf(e.event).map((p, k) => [p, e.spreads ? e.spreads[k] : 2]), own = new Counts();
    parts.filter(([p]) => isMine(p)).forEach(([p]) => own.add(p, 1));
    if (!own.size) return e;
    const rest = parts.filter(([p]) => !isMine(p)), alone = range(cells).map(k => pairsOf([...own.values()], k, "add-remove")[0]);
    const joined = square => ({kind: "composed", events: [...rest.map(([p]) => p), gaussian(square)]});
    if (nb === "add-remove") return {...e, event: joined(alone[cell]), spreads: null};
    const spread = M.min(2, Q(most(pairsOf([...own.values()], cell, nb)) / most(alone)));
    return {...e, event: joined(most(alone)), spreads: [...rest.map(([, x]) => x), spread]};
  };
  return view(whole);
}
function groupEpsilons(s, cells, column, fixed) {
  if (!s.plan) return range(cells).map(() => [s.epsilon, false]);
  let whole = s.plan;
  const holds = e => perCell(e).some(one => one.column === column && one.multipliers[0].length === cells);
  if (!fixed) {
    const done = [];
    for (const [planned, made, count] of sideBySide(s.events, s.plan)) {
      if (!planned || !made || !covers(planned, made, s.nb)) return range(cells).map(() => [INF, false]);
      done.push({kind: "repeated", event: holds(made) ? made : planned, count});
    }
    whole = {kind: "composed", events: done};
  }
  const widths = perCell(whole).filter(e => e.column === column).map(e => e.multipliers[0].length);
  if (widths.length && !widths.includes(cells)) throw new Unpriced();
  const pays = (e, cell, delta) => price(seen(e, cell, column, cells, s.nb), delta, s.nb), everybody = fixed && price(whole, s.delta, s.nb);
  if (fixed) return range(cells).map(cell => { const own = pays(whole, cell, s.delta); return own[0] <= everybody[0] ? own : everybody; });
  const parted = e => {
    if (e.kind === "composed") { const all = e.events.map(parted); return [0, 1].map(k => ({...e, events: all.map(pair => pair[k])})); }
    if (e.kind === "repeated") return parted(e.event).map(event => ({...e, event}));
    return holds(e) ? [{kind: "no-op"}, e] : [e, {kind: "no-op"}];
  };
  const [common, own] = parted(whole), first = price(common, s.delta / 2, s.nb);
  return range(cells).map(cell => { const second = pays(own, cell, s.delta / 2); return [first[0] + second[0], first[1] || second[1]]; });
}
function keeps(s, group, cells) {
  const total = inventory(seen(s.events, group.cell, group.column, cells, s.nb), s.nb);
  return total.isPrivate && !total.others.length && gaussianEpsilon(Q(total.square), s.delta) <= group.limit * (1 + SLACK);
}

/* ---- the table of releases: section 4.10 */
const NAMES = {gaussian: "Gaussian", laplace: "Laplace", "discrete-laplace": "discrete Laplace",
  "per-cell": "Gaussian by cell", "non-private": "exact"};
function g(x) {  // six significant digits, as printf's %g
  if (x === INF) return "inf";
  const power = x === 0 ? 0 : +x.toExponential(5).split("e")[1];
  if (power >= -4 && power < 6) return String(+x.toPrecision(6));
  const [digits] = x.toExponential(5).split("e");
  return `${+digits}e${power < 0 ? "-" : "+"}${String(M.abs(power)).padStart(2, "0")}`;
}
function* leaves(e, times = 1, rows = "all rows") {
  if (e.kind === "repeated") times *= e.count;
  if (e.kind === "poisson-sampled") rows = `a secret random batch, each row with probability ${g(e.rate)}`;
  if (e.kind === "visibly-sampled") rows = `a random batch that can be seen, each row with probability ${g(e.rate)}`;
  if (e.kind === "on-part") rows = `one of ${e.parts} fixed parts of the rows`;
  if (e.kind === "private-selection") rows += `, in the best of a random number of runs (mean ${g(e.mean)}, shape ${g(e.shape)})`;
  if (e.kind === "composed" || "event" in e) { if (times) for (const one of within(e)) yield* leaves(one, times, rows); }
  else if (e.kind !== "no-op") {
    const numbers = e.kind === "per-cell" ? e.multipliers.flat() : ["noise_multiplier", "epsilon", "delta", "rho"].filter(n => n in e).map(n => e[n]);
    yield [NAMES[e.kind] ?? e.kind, numbers, rows, times];
  }
}
function tallied(table) {
  const out = {};
  for (const [mechanism, numbers, rows, times] of table) { const k = JSON.stringify([mechanism, numbers, rows]); out[k] = (out[k] ?? 0) + times; }
  return canonical(out);
}

/* ---- findings: section 5 */
const attempt = (f, otherwise) => { try { return f(); } catch (e) { if (e instanceof Malformed) throw e; return otherwise; } };
async function contradictions(doc) {
  const found = [], say = (code, wrong) => { if (wrong && !found.includes(code)) found.push(code); };
  const number = v => v === "inf" ? INF : v, {promise} = doc, named = doc.versions;
  const {checksum, created, ...content} = doc;
  say("checksum", checksum !== await sha256(bytes(canonical(content))));
  [doc.events, doc.plan].forEach(part => part && sound(part.event));
  const s = {doc, events: doc.events.event, plan: doc.plan && doc.plan.event, nb: promise.neighbours, delta: promise.delta,
    budget: number(promise.epsilon), epsilon: number(doc.epsilon)};
  const nothing = kept(s.events) === null;
  say("relation", doc.accounting.neighbours !== s.nb || (promise.protects === "sensitive_features" && s.nb !== "replace-one"));
  say("rows-of-a-person", promise.unit && promise.unit.max_rows === null && s.budget < INF && !nothing);
  say("delta", doc.delta !== s.delta);
  const cost = attempt(() => charge(s), null);
  say("unpriced", cost === null);
  if (cost) say("epsilon", !inside(cost, s.epsilon) || (s.epsilon === INF && cost[0] < INF));
  say("route", !attempt(() => isRoute(doc.accounting.route, s), true));
  say("guarantee", s.epsilon > s.budget * (1 + SLACK));
  const columns = new Map();
  for (const group of doc.groups ?? []) columns.set(group.column, [...(columns.get(group.column) ?? []), group]);
  for (const [column, groups] of columns) {
    const cells = groups.length, order = groups.map(one => one.cell).sort((a, b) => a - b);
    const alike = groups.every(one => one.fixed === groups[0].fixed) && new Set(groups.map(one => one.name)).size === cells;
    if (order.some((cell, k) => cell !== k) || !alike) { say("groups", true); continue; }
    const pays = attempt(() => groupEpsilons(s, cells, column, groups[0].fixed), null);
    if (!pays) { say("groups", true); continue; }
    for (const group of groups) {
      say("group", !inside(pays[group.cell], number(group.epsilon)));
      say("limit", "limit" in group && !attempt(() => keeps(s, group, cells), false));
    }
  }
  const required = {"not-private": s.epsilon === INF, "seeded-noise": doc.noise === "seeded",
    "data-dependent-bounds": doc.bounds.some(b => b.origin === "read from the data, not covered"), "user-code-trusted": doc.user_code === "trusted"};
  say("flag", Object.entries(required).some(([flag, holds]) => holds !== doc.stamps.includes(flag)));
  const capped = !s.plan && !nothing && s.budget < INF;
  say("nothing-fixed", capped && !doc.cap);
  say("filter", !capped && doc.cap);
  say("plan", s.plan && !attempt(() => isPrefix(s.events, s.plan, s.nb), false));
  const told = (doc.releases ?? []).map(one => [one.mechanism, one.numbers, one.rows, one.times]);
  say("releases", told.length && tallied(told) !== tallied(leaves(s.events)));
  const singles = doc.arithmetic !== "exact";
  say("arithmetic", singles !== ("torch" in named) || (singles && doc.user_code !== "trusted"));
  say("audit", doc.audit && doc.audit.epsilon > s.epsilon);
  say("version", ["fairveil", "python", "numpy", "scipy"].some(name => !(name in named)));
  return {codes: found, cost: cost && cost[0]};
}
async function check(text, schema) {
  try {
    const doc = parse(text);
    shaped(doc, schema, schema);
    const {codes, cost} = await contradictions(doc);
    return {verdict: codes.length ? "inconsistent" : "consistent", contradictions: codes.sort(), cost, statement: doc};
  } catch (error) {
    if (!(error instanceof Malformed) && !(error instanceof RangeError)) throw error;
    return {verdict: "malformed", contradictions: [], reason: error.message};
  }
}

/* ---- signatures: section 6 */
const fromBase64 = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
async function checkSignature(text, envelopeText, pem) {
  try {
    const envelope = parse(envelopeText), spki = fromBase64(pem.replace(/-----[^-]+-----|\s/g, ""));
    const payload = fromBase64(envelope.payload), {keyid, sig} = envelope.signatures[0];
    const head = bytes(`DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `);
    const key = await crypto.subtle.importKey("spki", spki, "Ed25519", false, ["verify"]);
    const made = await crypto.subtle.verify("Ed25519", key, fromBase64(sig), Uint8Array.from([...head, ...payload]));
    const said = parse(new TextDecoder("utf-8", {fatal: true}).decode(payload));
    const digest = await sha256(bytes(canonical(parse(text)))), subject = said.subject[0];
    const holds = made && envelope.signatures.length === 1 && envelope.payloadType === "application/vnd.in-toto+json"
      && said._type === "https://in-toto.io/Statement/v1" && said.predicateType === PREDICATE && keyid === await sha256(spki)
      && keyid === said.predicate.signer && subject.name === "statement.json" && "sha256:" + subject.digest.jcsSha256 === digest;
    return {verdict: holds ? "valid" : "refused", signed: said};
  } catch (error) {
    return {verdict: "refused", reason: String(error)};
  }
}
const PREDICATE = "https://fairveil.org/privacy-statement/v1";
if (typeof module !== "undefined") module.exports = {check, checkSignature};
