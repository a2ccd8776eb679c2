"""A confirmation in other words keeps them.

A version has the words of the first message that said it. One that comes in late brings its own, and a late correction
splits a version where it was said again: both need the words of each message, not only its time.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

from migrations.vectors import vector_type

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        f"""
        ALTER TABLE memory_fact_confirmations
          ADD COLUMN wording jsonb,             -- null: as the fact itself
          ADD COLUMN embedding {vector_type()}  -- of these words
        """
    )


def downgrade() -> None:
    op.execute("ALTER TABLE memory_fact_confirmations DROP COLUMN wording, DROP COLUMN embedding")
