"""The page's style sheet: in the page, so that the report is one file."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #59636e;
  --quiet: #b0b7c0; --panel: #f5f6f8; --first: #0072b2; --second: #c04f00;
  --good: #0b6e4f; --bad: #b3261e; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e4e7eb;
  --soft: #a0a9b4; --quiet: #59626d; --panel: #1d2126; --first: #56b4e9; --second: #f08c3a;
  --good: #4cc59a; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.3rem; margin: 0.5rem 0; } h2 { font-size: 1.1rem; margin: 2.2rem 0 0.4rem; }
p { margin: 0.4rem 0 0.8rem; max-width: 46rem; } .soft, caption, figcaption { color: var(--soft); }
caption, figcaption { text-align: left; font-size: 0.875rem; padding: 0.2rem 0; }
.verdict { border-left: 0.4rem solid var(--good); background: var(--panel);
  padding: 0.6rem 1rem; } .verdict.broken { border-color: var(--bad); }
.verdict strong { font-size: 1.15rem; }
.figures { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
figure { margin: 0; min-width: 0; max-width: 34rem; break-inside: avoid; }
svg { display: block; width: 100%; height: auto; }
svg * { stroke-linejoin: round; stroke-linecap: butt; } svg text { font-family: inherit; }
.dot { fill: var(--first); fill-opacity: 0.45; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.9rem; margin: 0.4rem 0; }
th, td { padding: 0.25rem 0.9rem 0.25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--quiet); }
th { font-weight: 600; } .n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; } th.n { white-space: normal; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 700; }
tr.chosen td { font-weight: 700; }
.typed { display: block; overflow: hidden; contain: paint; overflow-wrap: anywhere;
  max-width: 24rem; }
.facts td { overflow-wrap: anywhere; } .facts .typed { max-width: none; }
summary { cursor: pointer; color: var(--soft); }
@media (max-width: 40rem) { table { font-size: 0.8rem; } th, td { padding-right: 0.6rem; }
  .cards thead { display: none; }
  .cards, .cards caption, .cards tbody, .cards tr, .cards td { display: block; }
  .cards tr { border-bottom: 1px solid var(--quiet); padding: 0.5rem 0; }
  .cards td { border: 0; padding: 0.05rem 0; text-align: left; white-space: normal; }
  .cards td.n { display: inline-block; margin-right: 0.8rem; }
  .cards td::before { content: attr(data-name) " "; color: var(--soft); } }
@media print { html { font-size: 11px; } .wide { overflow: visible; }
  body { max-width: none; padding: 0; }
  h2 { break-after: avoid; } tr { break-inside: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  .verdict { border: 1px solid var(--quiet); } }
"""
