"""From text to scores with a bundle. Needs no server; the export measures through it."""
