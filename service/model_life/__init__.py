"""The model that serves: opened, put in another's place without a restart, let go."""
