// Makes the calls that its input names, one a line; see driver.py for both formats.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { AdrelClient } = await import(pathToFileURL(process.argv[2]));
const clients = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  const out = await call(...line.split("\t").map(decodeURIComponent));
  console.log(out.map((field) => encodeURIComponent(field ?? "")).join("\t"));
}

async function call(base, timeoutMs, leastScore, kind, query, ...fields) {
  const key = base + timeoutMs;
  if (!clients.has(key)) clients.set(key, new AdrelClient(base, Number(timeoutMs)));
  const client = clients.get(key);
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
    answer =
      kind === "fallback"
        ? await client.scoreOrFallback(
            query,
            ads,
            (asked) => Buffer.byteLength(asked) / 100,
            options,
          )
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
    error?.code ?? error,
    error && (error.httpStatus ?? 0),
    error && (error.retryAfterMs ?? 0),
    elapsedMs,
    ...scores.flatMap((ad) => [ad.id, ad.score, ad.status, ad.eligible, ad.truncated ?? false]),
  ];
}
