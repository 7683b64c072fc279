"""The keyword arguments of functions, for type checkers and editors; nothing imports this at run time."""
from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Sequence, SupportsFloat, TypedDict, Union

Duration = Union[SupportsFloat, str]
"""Milliseconds, or a text such as "18.5us"."""
File = Union[str, "os.PathLike[str]"]
Names = Union[str, Sequence[str]]
Numbers = Union[int, str, Iterable[int]]
"""Several numbers: a list, or a text such as "2..16" or "8..128x2"."""


class Limits(TypedDict, total=False):
    """The limits of every command."""

    max_input: Union[int, str]


class Ops(Limits, total=False):
    """Costs and limits that all but ``analyze`` share."""

    f: Duration
    i: Duration
    w: Duration
    b: Duration
    output_layer: Duration
    p2p: Duration
    costs_per: str
    costs: File | Mapping[str, Any]
    mem: str | Iterable[float]
    cap: str | float | Iterable[float]
    release: str


class Device(TypedDict, total=False):
    """A model on devices instead of costs."""

    model: File
    gpu: File
    runtime: str
    precision: str
    assume: Mapping[str, float | str] | str | Sequence[str]
    gpus_per_node: int
    zero: int
    shard_size: int
    global_batch_size: int
    seq_length: int
    embedding_layers: float
    head_layers: float
    first_layers: int
    last_layers: int
    account_for_embedding: bool
    account_for_loss: bool
    no_sequence_parallel: bool
    save_scores: bool
    full_attention: bool
    slowdown: float
    tensor_exposed: float
    message_exposed: float
    accumulation_bytes: float
    reserve_memory: str
    gradients: str
    explain: bool


class Layout(TypedDict, total=False):
    """One shape of a schedule, and one division of a model over devices."""

    pp: int
    m: int
    microbatches: int
    vpp: int
    layout: str
    layout_costs: str | Iterable[float]
    tp: int
    cp: int
    ep: int
    etp: int
    dp: int
    micro_batch_size: int


class Step(Ops, total=False):
    """Keywords that ``simulate``, ``compare`` and ``plan`` share."""

    r: Duration
    r_selective: Duration
    copy: Duration
    optimizer: str
    grad_reduction: str
    optimizer_step: Duration
    reduce_grad: Duration
    unshard: Duration
    norm: Duration
    overlap: str
    p2p_mode: str
    lowering: str
    ranks_per_host_link: int
    network: str | Mapping[str, Any]
    saved_fraction: str | float | Iterable[float]
    profile: str
    slices: int
    moe_overlap: bool
    parts: str
    recompute: Names
    recompute_method: str


class Options(Step, Device, Layout, total=False):
    """All keyword arguments of ``simulate`` and ``compare``."""

    microbatch_group_size: int
    replicas: Sequence[int]
    in_flight: int
    fsdp: bool
    unshard_lookahead: str | int | Sequence[int]
    arrivals: File
    policy: str
    lose: str | Mapping[str, Any]
    send_budget: str | int
    offload: str | float | Iterable[float]
    inject: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    lengths: File
    recompute_modules: Names
    recompute_num_layers: int
    jitter: float | str
    p2p_jitter: float | str
    rank_jitter: float | str
    step_jitter: float | str
    length_jitter: float | str
    jitter_shape: str
    slow: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    straggler: str | Mapping[str, Any]
    sensitivity: bool
    seeds: int
    noise_seed: int


class PlanOptions(Step, Device, total=False):
    """All keyword arguments of ``plan``."""

    pp: Numbers
    vpp: Numbers
    m: Numbers
    microbatches: Numbers
    schedules: Names
    gpus: int
    tp: Numbers
    cp: Numbers
    ep: Numbers
    etp: Numbers
    micro_batch_size: Numbers
    recompute_num_layers: Numbers
    send_budget: str | int | Sequence[int]
    unshard_lookahead: str | int | Sequence[int]
    split: Names
    total_f: Duration
    total_i: Duration
    total_w: Duration
    total_b: Duration
    top: int
    threads: int
    resume: File
    merge: File | Sequence[File]
    svg: File


class SearchOptions(Ops, Device, Layout, total=False):
    """All keyword arguments of ``search``."""

    placement: str
    objective: str
    time_limit: Duration
    effort: int
    seed: int


class TryOptions(TypedDict, total=False):
    """All keyword arguments of ``Analysis.try_``, beside the schedules and ``m``."""

    microbatches: Numbers
    vpp: Numbers
    split_b: float


class AnalyzeOptions(Limits, total=False):
    """All keyword arguments of ``analyze``."""

    rules: File
    costs_out: File
    costs_per: str
    split_b: float
    try_: Names
    try_out: File
    m: Numbers
    microbatches: Numbers
    vpp: Numbers
    mem: str | Iterable[float]
    cap: str | float | Iterable[float]
    release: str
    saved_fraction: str | float | Iterable[float]
