"""Order and durability: who may change an agent's memory, when, and what happens when somebody dies meanwhile.

    accepted ─> running (extract ─> resolve ─> reconcile ─> upsert) ─> done
                   └────────────> parked (stage, cause) ─> replayed as a new run, bulk lane, same occurred_at

The promises that these files carry, each tested in ``tests/integration/turns`` and ``tests/acceptance``:

1. Accepted means kept. From the commit of ``accept`` on, a message survives broker loss, SIGKILL of any worker and
   database restarts: what is unfinished stands in ``runs``, and the sweeper finds it.
2. Exactly-once effect. Whoever writes holds the agent's turn under the newest fence and the start token of the stage;
   everybody else's statement matches no row.
3. One agent, one order. A turn goes to the first unfinished run by (lane, seq), and to no other while that one waits.
4. One stage writes. The planners store a plan; ``finish`` applies it, marks the run done and frees the turn in one
   commit. (A bulk turn, ``bulk_turns``, plans and applies several consecutive runs in one commit, with the model's
   answers at hand.)

Lock order everywhere: agent_seq, agent_turns, runs by seq, entities by key, facts by id.
"""
