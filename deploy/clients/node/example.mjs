// Scores the ads of adrel's README and prints id, score and status of each.
import { AdrelClient } from "./adrel.mjs";

const client = new AdrelClient(process.argv[2], 250);
const ads = [
  { id: "A", title: "Nike Marathon Elite Shoes - 20% Off" },
  { id: "B", title: "Running Gear for Beginners", description: "Shirts, shorts and socks" },
  { id: "C", text: "Cheap Printer Ink Outlet" },
];
const answer = await client.scoreOrFallback("best running shoes for marathons", ads, () => 0.1);
for (const { id, score, status } of answer.scores) console.log(id, score, status);
