// Is a schedule legal? Every problem is returned, not only the first.
#pragma once

#include "sim/ir/error.h"
#include "sim/ir/program.h"
#include "sim/ir/schedule.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// Looks for: stages without rank; ops out of range, on the wrong rank, duplicate or missing; W
/// before I, B or I before F; B mixed with I and W; R or copies that are missing, or stand where
/// they cannot; broken pairs; and, where training is asynchronous, a backward that reads other
/// weights than its forward. Any Schedule may be given, however wrong its numbers are.
/// Problems come in rank and position order.
Problems validate_ops(const Schedule& schedule);

/// The same, and where these are sound the cells of `posted`: other ops than the order has; SEND
/// and RECV without partner, too early or too late; collectives of stages that are elsewhere.
/// Empty: validate_schedule() makes a ValidSchedule.
Problems find_problems(const Schedule& schedule);

/// Orders that wait for each other across ranks, as a problem at the op at which the first stands.
std::optional<Problem> find_deadlock(const ValidSchedule& schedule);

/// find_problems(), and where there are none validate_message_order() and find_deadlock(). Empty:
/// lower() succeeds, and every runtime receives what it expects.
Problems validate(const Schedule& schedule);

/// The cells of `posted` alone, where there are any. Needs sound ops.
Problems validate_posted(const Schedule& schedule);

/// The messages of `posted` alone; none posted is no problem. Needs sound ops, which stand in
/// `posted` as in the order.
Problems validate_messages(const Schedule& schedule);

/// Messages that are posted in another order than their peer expects. A runtime that knows messages
/// by name runs such lists, so a ValidSchedule may have them. Needs both ends of every message.
Problems validate_message_order(const Schedule& schedule);

/// The UNSHARD, RESHARD and REDUCE_GRAD of `posted` alone: on a rank that holds their stage; where
/// a stage is gathered at all, all its ops between UNSHARD and RESHARD. Needs the same.
Problems validate_collectives(const Schedule& schedule);

/// The WAIT_SEND and WAIT_REDUCE_GRAD of `posted` alone. Lists without any are those of a runtime
/// that waits by itself (PyTorch before 2.15); with one, every SEND needs one WAIT_SEND behind it
/// on its rank, and every REDUCE_GRAD one WAIT_REDUCE_GRAD before the rank's next REDUCE_GRAD.
Problems validate_waits(const Schedule& schedule);

/// The weights of an asynchronous schedule alone: a forward reads a version that is there, its
/// backward the same one, and versions are written one after the other. Needs sound ops.
Problems validate_weights(const Schedule& schedule);

/// A deadlock as a problem, at the op at which its first rank stands.
Problem deadlock_problem(const ValidSchedule& schedule, const Deadlock& deadlock);

}  // namespace bubblescope
