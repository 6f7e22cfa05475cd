"""The parts of a running service, each made from the settings; `service.app` joins them."""
