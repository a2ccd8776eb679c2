"""What readers ask for: words and vectors by index, and what the system believed earlier.

A fact's row says since when it is believed and until when. What its two columns cannot say (a late message moved its
beginning, or the end that it had already, or put it in other words) is kept as it was, by the database itself.

Revision ID: 0005
Revises: 0004
"""

from alembic import op

from migrations.vectors import vector_type

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WORDS = r"""
-- A text as readers compare it: small letters, no accents. Every script keeps its letters.
CREATE FUNCTION mandua_folded(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN lower(regexp_replace(normalize(said, NFKD), '[\u0300-\u036f]', '', 'g'));

-- The word that all facts of an agent share, so that the words of one agent are found without reading another's.
CREATE FUNCTION mandua_agent_word(agent text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN '~' || md5(agent);

CREATE FUNCTION mandua_words(agent text, said text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT
RETURN array_to_tsvector(ARRAY[mandua_agent_word(agent)]) || to_tsvector('simple'::regconfig, mandua_folded(said));

CREATE INDEX memory_facts_words ON memory_facts USING gin (mandua_words(agent_id, fact_text));
"""

# Only agents with more facts than an exact search is quick for use it (worker.read.finding); whatever must not miss a
# neighbour orders by distance + 0, which no index serves. Every fact that is stored pays for it: half of pgvector's
# usual width costs 0.4 ms a fact instead of 1.0, and a wider search makes up for it.
NEIGHBOURS = """
CREATE INDEX memory_facts_nearest ON memory_facts USING hnsw (embedding {kind}_cosine_ops)
  WITH (m = 8, ef_construction = 32)
"""

REVISIONS = """
CREATE TABLE memory_fact_revisions (
  id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  fact_id      uuid NOT NULL REFERENCES memory_facts (id) ON DELETE CASCADE,
  replaced_at  timestamptz NOT NULL,
  was          jsonb NOT NULL       -- the row until then, without its vector
);
CREATE INDEX memory_fact_revisions_fact ON memory_fact_revisions (fact_id, replaced_at);

CREATE FUNCTION memory_facts_keep_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('mandua.forgetting', true) IS DISTINCT FROM 'on' THEN
    INSERT INTO memory_fact_revisions (fact_id, replaced_at, was)
    VALUES (OLD.id, mandua_now(), to_jsonb(OLD) - 'embedding' - 'text_hash');
  END IF;
  RETURN NULL;
END $$;
-- Not for the ordinary ending: valid_to and invalidated_at tell of it.
CREATE TRIGGER memory_facts_revised AFTER UPDATE ON memory_facts FOR EACH ROW
  WHEN (OLD.valid_from IS DISTINCT FROM NEW.valid_from
        OR (OLD.valid_to IS NOT NULL AND OLD.valid_to IS DISTINCT FROM NEW.valid_to)
        OR OLD.fact_text IS DISTINCT FROM NEW.fact_text OR OLD.confidence IS DISTINCT FROM NEW.confidence
        OR OLD.entity_key IS DISTINCT FROM NEW.entity_key)
  EXECUTE FUNCTION memory_facts_keep_revision();
"""

# What is true at a time is asked by it; what an entity went through, by its facts in time.
TIMES = "CREATE INDEX memory_facts_times ON memory_facts (agent_id, valid_from)"


def upgrade() -> None:
    op.execute(WORDS)
    op.execute(NEIGHBOURS.format(kind=vector_type().partition("(")[0]))
    op.execute(REVISIONS)
    op.execute(TIMES)


def downgrade() -> None:
    op.execute("DROP INDEX memory_facts_times, memory_facts_nearest, memory_facts_words")
    op.execute("DROP TRIGGER memory_facts_revised ON memory_facts")
    op.execute("DROP FUNCTION memory_facts_keep_revision()")
    op.execute("DROP TABLE memory_fact_revisions")
    op.execute("DROP FUNCTION mandua_words(text, text)")
    op.execute("DROP FUNCTION mandua_agent_word(text)")
    op.execute("DROP FUNCTION mandua_folded(text)")
