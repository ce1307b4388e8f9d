"""Whoever gives verdicts: functions, programs, language models, files of other tools, logs of clicks."""

from __future__ import annotations

from roundel.judges.answers import Answer, StopJudging, TryAgain
from roundel.judges.callable import judge_with
from roundel.judges.clicks import LogColumns, count_log, tell_counts, tell_log
from roundel.judges.command import judge_by_command
from roundel.judges.endpoint import ChatModel, OpenAIChat
from roundel.judges.exchange import (
    export_label_studio,
    export_manifest,
    import_battles,
    import_label_studio,
    import_verdicts,
)
from roundel.judges.model import ModelSettings, judge_by_model
from roundel.judges.replay import Estimate, replay_log
from roundel.judges.session import Session, Summary

__all__ = [
    "Answer",
    "ChatModel",
    "Estimate",
    "LogColumns",
    "ModelSettings",
    "OpenAIChat",
    "Session",
    "StopJudging",
    "Summary",
    "TryAgain",
    "count_log",
    "export_label_studio",
    "export_manifest",
    "import_battles",
    "import_label_studio",
    "import_verdicts",
    "judge_by_command",
    "judge_by_model",
    "judge_with",
    "replay_log",
    "tell_counts",
    "tell_log",
]
