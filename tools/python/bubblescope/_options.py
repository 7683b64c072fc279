"""The keyword arguments of a prediction, for type checkers and editors; nothing imports this at run time."""
from __future__ import annotations

import os
from typing import Any, Mapping, Sequence, TypedDict, Union

Duration = Union[float, str]
"""Milliseconds, or a text such as "18.5us"."""
File = Union[str, "os.PathLike[str]"]


class Shape(TypedDict, total=False):
    """The options that decide which ops there are."""

    pp: int
    m: int
    max_input: Union[int, str]
    microbatches: int
    vpp: int
    microbatch_group_size: int
    slices: int
    moe_overlap: bool
    replicas: Sequence[int]
    in_flight: int
    fsdp: bool
    unshard_lookahead: str | int | Sequence[int]
    profile: str
    layout: str
    layout_costs: str | Sequence[float]


class Costs(Shape, total=False):
    """The options that decide how long ops take, and what they hold."""

    f: Duration
    i: Duration
    w: Duration
    b: Duration
    r: Duration
    r_selective: Duration
    output_layer: Duration
    copy: Duration
    p2p: Duration
    optimizer: str
    grad_reduction: str
    optimizer_step: Duration
    reduce_grad: Duration
    unshard: Duration
    norm: Duration
    costs_per: str
    costs: File | Mapping[str, Any]
    arrivals: File
    overlap: str
    p2p_mode: str
    lowering: str
    policy: str
    lose: str | Mapping[str, Any]
    send_budget: str | int
    ranks_per_host_link: int
    network: str | Mapping[str, Any]
    mem: str | Sequence[float]
    cap: str | float | Sequence[float]
    release: str
    saved_fraction: str | float | Sequence[float]
    recompute: str | Sequence[str]
    offload: str | float | Sequence[float]
    inject: str | Sequence[str | Mapping[str, Any]]


class Models(Costs, total=False):
    """A model on devices instead of costs."""

    model: File
    gpu: File
    runtime: str
    precision: str
    assume: Mapping[str, float | str] | str | Sequence[str]
    lengths: File
    gpus_per_node: int
    tp: int
    cp: int
    ep: int
    etp: int
    dp: int
    zero: int
    shard_size: int
    recompute_modules: str | Sequence[str]
    recompute_method: str
    recompute_num_layers: int
    micro_batch_size: int
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
    parts: str
    tensor_exposed: float
    message_exposed: float
    accumulation_bytes: float
    reserve_memory: str
    gradients: str
    explain: bool


class Options(Models, total=False):
    """All keyword arguments of ``simulate`` and ``compare``."""

    jitter: float | str
    p2p_jitter: float | str
    rank_jitter: float | str
    step_jitter: float | str
    length_jitter: float | str
    jitter_shape: str
    slow: str | Sequence[str | Mapping[str, Any]]
    straggler: str | Mapping[str, Any]
    sensitivity: bool
    seeds: int
    noise_seed: int
