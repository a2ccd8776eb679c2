"""What the memory does while it sleeps: one background job a file (behaviour: 11).

A job's run stands in the last lane of its agent and works in steps. Each step takes the agent's turn: it reads, makes
at most one model call with nothing held open, and applies what it decided in the commit that gives the turn back. So
it never races a write, a message waits no longer than one step, and whatever dies in between has changed nothing.

What is due stands in the rows (``facts_changed_at`` after ``profile_refreshed_at``, …) and is chosen in SQL, so a job
that is killed, doubled or skipped goes on with what is left.
"""
