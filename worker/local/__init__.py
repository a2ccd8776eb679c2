"""The local stack: embedded Postgres and Valkey, and the Procfile's processes, with nothing installed by hand."""
