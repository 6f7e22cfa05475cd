"""The report of an export: `report.json` with all figures, `report.html` drawn from it alone."""
