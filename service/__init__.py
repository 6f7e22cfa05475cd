"""Online half: loads a bundle and scores ads over HTTP. Imports no training stack."""
