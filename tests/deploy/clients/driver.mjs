// Makes the calls that its input names, one a line; see driver.py for both formats.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { AdrelClient } = await import(pathToFileURL(process.argv[2]));
const clients = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  const out = await call(...line.split("\t").map(decodeURIComponent));
  console.log(out.map((field) => encodeURIComponent(field ?? "")).join("\t"));
}

function clientOf(base, timeoutMs, header) {
  const key = base + timeoutMs + header;
  if (!clients.has(key)) {
    const [name, value] = header.split(": ");
    const options = header ? { headers: { [name]: value } } : {};
    clients.set(key, new AdrelClient(base, Number(timeoutMs), options));
  }
  return clients.get(key);
}

function fallbackOf(given) {
  const fixed = { undefined, promise: Promise.resolve(0.5) };
  if (given in fixed) return () => fixed[given];
  return given ? () => Number(given) : (asked) => Buffer.byteLength(asked) / 100;
}

async function call(base, timeoutMs, header, leastScore, kind, query, ...fields) {
  const options = leastScore ? { minScore: Number(leastScore) } : {};
  const ads = [];
  for (let i = 0; i < fields.length; i += 4) {
    const [id, title, description, text] = fields
      .slice(i, i + 4)
      .map((field) => field || undefined);
    ads.push({ id, title, description, text });
  }
  const start = performance.now();
  let ending = "returned";
  let answer;
  let error;
  try {
    const client = clientOf(base, timeoutMs, header);
    const [method, given = ""] = kind.split(" ");
    answer =
      method === "fallback"
        ? await client.scoreOrFallback(query, ads, fallbackOf(given), options)
        : await client.score(query, ads, options);
    error = answer.error;
  } catch (raised) {
    ending = "raised";
    error = raised;
  }
  const elapsedMs = performance.now() - start;
  const scores = answer?.scores ?? [];
  return [
    ending,
    error?.code,
    error?.message,
    error && (error.httpStatus ?? 0),
    error && (error.retryAfterMs ?? 0),
    elapsedMs,
    ...scores.flatMap((ad) => [ad.id, ad.score, ad.status, ad.eligible, ad.truncated ?? false]),
  ];
}
