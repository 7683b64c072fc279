// Is a schedule legal? Every problem is returned, not only the first.
#pragma once

#include "sim/ir/error.h"
#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// Looks for: stages without rank; ops out of range, on the wrong rank, duplicate or missing; W
/// before I, B or I before F; B mixed with I and W; R or copies that are missing, or stand where
/// they cannot; broken pairs; orders that wait for each other
/// across ranks (a deadlock); and, where a file posts messages, SEND and RECV without partner, too
/// early, too late or in another order than the peer's; and, where training is asynchronous, a
/// backward that reads other weights than its forward.
/// Problems come in rank and position order. Empty: lower() succeeds.
Problems validate(const Schedule& schedule);

/// The same without the search for a deadlock, for callers that lower anyway.
Problems validate_ops(const Schedule& schedule);

/// The messages of `posted` alone; none posted is no problem. Needs a schedule whose ops are sound.
Problems validate_messages(const Schedule& schedule);

/// The UNSHARD, RESHARD and REDUCE_GRAD of `posted` alone: on a rank that holds their stage; where
/// a stage is gathered at all, all its ops between UNSHARD and RESHARD. Needs sound ops.
Problems validate_collectives(const Schedule& schedule);

/// The WAIT_SEND and WAIT_REDUCE_GRAD of `posted` alone. Lists without any are those of a runtime
/// that waits by itself (PyTorch before 2.15); with one, every SEND needs one WAIT_SEND behind it
/// on its rank, and every REDUCE_GRAD one WAIT_REDUCE_GRAD before the rank's next REDUCE_GRAD.
Problems validate_waits(const Schedule& schedule);

/// The weights of an asynchronous schedule alone: a forward reads a version that is there, its
/// backward the same one, and versions are written one after the other. Needs sound ops.
Problems validate_weights(const Schedule& schedule);

/// A deadlock as a problem, at the op at which its first rank stands.
Problem deadlock_problem(const Schedule& schedule, const Deadlock& deadlock);

}  // namespace bubblescope
