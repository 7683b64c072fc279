// Validation: is a schedule legal? Returns every problem, not only the first.
#pragma once

#include "sim/ir/error.h"
#include "sim/ir/program.h"
#include "sim/ir/pytorch_release.h"
#include "sim/ir/schedule.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// Finds orders, placements and tables of stages and ranks that do not fit the shape, stages
/// without a rank, and stage graphs that are none. Accepts any Schedule, however wrong its numbers
/// are.
Problems validate_shape(const Schedule& schedule);

/// The same and, if there are no such problems, also finds: ops out of range, on the wrong rank,
/// duplicate or missing; W before I, B or I before F; B mixed with I and W; R or copies that are
/// missing or misplaced; broken pairs; in asynchronous training, a backward that reads other
/// weights than its forward; and after edges between ops that do not exist or cannot wait for each
/// other. Problems come in rank and position order.
Problems validate_ops(const Schedule& schedule);

/// The same and, if there are no such problems, also checks the cells of `posted`: ops that differ
/// from the order's; SEND and RECV without a partner, too early or too late; collectives of stages
/// that are on another rank. If the result is empty, validate_schedule() returns a ValidSchedule.
Problems find_problems(const Schedule& schedule);

/// Finds orders that deadlock, reported at the op that blocks the first rank of the cycle.
std::optional<Problem> find_deadlock(const ValidSchedule& schedule);

/// Runs find_problems() and, if there are none, validate_message_order() and find_deadlock(). If
/// the result is empty, lower() succeeds and every runtime receives what it expects.
Problems validate(const Schedule& schedule);

/// Checks the cells of `posted`, if there are any. The ops must have passed validate_ops.
Problems validate_posted(const Schedule& schedule);

/// Checks the messages of `posted`, if there are any. The ops must have passed validate_ops and
/// have the same order in `posted`.
Problems validate_messages(const Schedule& schedule);

/// Finds messages that are posted in another order than their peer expects. A runtime that matches
/// messages by tag runs such lists, so a ValidSchedule may have them. Both ends of every message
/// must be posted.
Problems validate_message_order(const Schedule& schedule);

/// Checks the UNSHARD, RESHARD and REDUCE_GRAD of `posted`: they must be on a rank that holds their
/// stage; if a stage is gathered, all its ops must be between UNSHARD and RESHARD; and a stage is
/// reduced at most once, after all its backwards. The ops must have passed validate_ops.
Problems validate_collectives(const Schedule& schedule);

/// Checks the WAIT_SEND and WAIT_REDUCE_GRAD of `posted`. Lists without any belong to a runtime
/// that waits implicitly (PyTorch before 2.15). Otherwise every SEND needs one WAIT_SEND after it
/// on its rank, and every REDUCE_GRAD one WAIT_REDUCE_GRAD before the rank's next REDUCE_GRAD.
Problems validate_waits(const Schedule& schedule);

/// Checks whether a release of PyTorch takes the posted lists: those before 2.15 know no waits, and
/// 2.15 refuses a SEND or a REDUCE_GRAD without one. Lists without messages suit all.
Problems validate_release(const Schedule& schedule, PytorchRelease release);

/// Checks the weights of an asynchronous schedule: a forward reads an existing version, its
/// backward reads the same, and versions are written one after the other. The ops must have passed
/// validate_ops.
Problems validate_weights(const Schedule& schedule);

/// Checks the turns of replicas: known ones, for every stage, and no weight versions beside them.
/// The counts of replicas must be right.
Problems validate_turns(const Schedule& schedule);

/// Checks the number of chunks that a schedule states: a rank cannot have more stages of a pipeline
/// than the placement gives to any, and all stages must fit. Costs and memory that are given per
/// rank are divided by that number. The placement must be right.
Problems validate_chunks(const Schedule& schedule);

/// Checks the stage graph: its stages are those of the placement, inputs come before their readers,
/// and nothing else in the schedule needs a chain.
Problems validate_graph(const Schedule& schedule);

/// Checks after edges: both ops of each are in the order, they are two ops, the edge is given once,
/// and on one rank the awaited op comes first. Cycles over several ranks are deadlocks, which
/// find_deadlock() finds. The ops must have passed validate_ops.
Problems validate_after(const Schedule& schedule);

/// Sorts problems by rank and position.
Problems sort_by_place(Problems problems);

/// Returns a deadlock as a problem, reported at the op that blocks its first rank.
Problem make_deadlock_problem(const ValidSchedule& schedule, const Deadlock& deadlock);

}  // namespace bubblescope::inline sim
