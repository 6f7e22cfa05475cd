// Scores the README's ads and prints id, score and status. Arguments, if any: URL, timeout in ms.
import { AdrelClient } from "./adrel.mjs";

const [url = "http://127.0.0.1:8000", timeoutMs = 250] = process.argv.slice(2);
const client = new AdrelClient(url, Number(timeoutMs));
const ads = [
  { id: "A", title: "Nike Marathon Elite Shoes - 20% Off" },
  { id: "B", title: "Running Gear for Beginners", description: "Shirts, shorts and socks" },
  { id: "C", text: "Cheap Printer Ink Outlet" },
];
const answer = await client.scoreOrFallback("best running shoes for marathons", ads, () => 0.1);
for (const { id, score, status } of answer.scores) console.log(id, score, status);
