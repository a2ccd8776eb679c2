"""Settings from the environment, read once. Every name is in the README's table.

Secrets (URLs with passwords) are SecretStr, so that no ``repr`` or log shows them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from producer.contract import MemoryConfig


class SettingsError(Exception):
    """A setting is missing or wrong; ``str()`` is one line that says what to set."""


class Settings(BaseSettings):
    """What a worker process needs to know."""

    model_config = SettingsConfigDict(env_prefix="MANDUA_", extra="ignore", frozen=True)

    database_url: SecretStr | None = Field(default=None, validation_alias="DATABASE_URL")
    broker_url: SecretStr | None = None
    redis_url: SecretStr | None = None
    llm_model: str | None = None
    embedding_model: str = "local"
    embedding_dimensions: int = 384
    timezone: str = "UTC"
    config: Path | None = None  # a JSON file of MemoryConfig fields
    log_level: str = "INFO"
    pool_size: int = 24
    # How the ledger notices that something died. The lease is longer than any stage and renewed before each call.
    heartbeat_sec: float = 5.0
    silent_after_sec: float = 20.0
    resend_after_sec: float = 30.0
    sweep_sec: float = 5.0
    lease_sec: float = 180.0
    # Calls a second to each model, by all workers together, and how many may be made at once; unset: no limit of ours.
    llm_calls_per_sec: float | None = Field(default=None, gt=0)
    llm_burst: int = Field(default=10, ge=1)
    # Over these, runs wait until the next day (UTC). Money is counted where the model's price is known.
    daily_usd: float | None = Field(default=None, ge=0)
    daily_tokens: int | None = Field(default=None, ge=0)
    agent_daily_usd: float | None = Field(default=None, ge=0)
    agent_daily_tokens: int | None = Field(default=None, ge=0)
    keep_runs_days: float = Field(default=30.0, ge=0)  # how long runs that ended well, their results and plans are kept
    keep_traces: bool = True  # with them: what was sent and answered, for `mandua trace`
    # Seconds between two runs of a job for one agent, at least; 0 switches it off. What is due stands in the rows.
    job_plan_sec: float = Field(default=60.0, gt=0)  # how often somebody looks what is due
    job_dedup_entities_sec: float = Field(default=21_600.0, ge=0)
    job_dedup_facts_sec: float = Field(default=3_600.0, ge=0)
    job_promote_attributes_sec: float = Field(default=3_600.0, ge=0)
    job_score_sec: float = Field(default=86_400.0, ge=0)
    job_stale_sec: float = Field(default=86_400.0, ge=0)
    job_profiles_sec: float = Field(default=900.0, ge=0)
    job_summaries_sec: float = Field(default=86_400.0, ge=0)
    retry_base_sec: float = 1.0  # the first wait after a failure; it doubles, with full jitter, up to a minute

    @field_validator("llm_model", "redis_url", "config", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any) -> Any:
        return value or None

    def require_database_url(self) -> str:
        """DATABASE_URL. Raises SettingsError with the remedy."""
        if self.database_url is None:
            raise SettingsError("DATABASE_URL is not set; set it, or use `mandua up` for the embedded servers")
        return self.database_url.get_secret_value()

    def require_broker_url(self) -> str:
        """MANDUA_BROKER_URL. Raises SettingsError with the remedy."""
        if self.broker_url is None:
            raise SettingsError("MANDUA_BROKER_URL is not set; set it, or use `mandua up` for the embedded servers")
        return self.broker_url.get_secret_value()

    def memory_config(self) -> MemoryConfig:
        """The deployment's MemoryConfig: the defaults, changed by the file that MANDUA_CONFIG names."""
        if self.config is None:
            return MemoryConfig()
        try:
            return MemoryConfig.model_validate_json(self.config.read_bytes())
        except (OSError, ValueError) as error:
            raise SettingsError(f"MANDUA_CONFIG: {self.config}: {str(error).splitlines()[0]}") from None


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process."""
    return Settings()
