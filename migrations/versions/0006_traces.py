"""What became of a message, stage by stage: kept with the plans while a run lasts, with the result afterwards.

It is written by the statements that store a plan, give a run back, park or finish it, so it costs none of its own. It
goes when they go: with its run (MANDUA_KEEP_RUNS_DAYS), or when something of it is forgotten.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE run_plans ADD COLUMN told jsonb NOT NULL DEFAULT '[]'")
    op.execute("ALTER TABLE run_results ADD COLUMN trace jsonb NOT NULL DEFAULT '[]'")


def downgrade() -> None:
    op.execute("ALTER TABLE run_results DROP COLUMN trace")
    op.execute("ALTER TABLE run_plans DROP COLUMN told")
