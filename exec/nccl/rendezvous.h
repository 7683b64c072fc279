// How the processes of one run find each other: all call rank 0, and say who they are. Both ends
// show that they have the run's secret, which itself is not sent:
//
//   rank 0 to caller: challenge: version, a nonce
//   caller to rank 0: hello: its rank and the number of ranks, a nonce, HMAC(secret, all of these)
//   rank 0 to caller: welcome, when all are there: HMAC(secret, the same for rank 0)
#pragma once

#include <functional>

#include "exec/nccl/secret.h"
#include "exec/nccl/socket_transport.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// Rank 0 needs this to recognize the others.
struct RendezvousServer {
  Secret secret;
  /// Told once, of the first caller that does not have the secret.
  std::function<void(const std::string&)> warn = {};
};

/// Rank 0: waits at the listener until all others have come. Whoever is not one of them is turned
/// away; so many at most are listened to at a time, and nobody for longer than some seconds. Throws
/// Error that names who did not come within the limits.
SocketTransport accept_ranks(const TcpSocket& listener, std::int32_t count, const Limits& limits,
                             const RendezvousServer& door);

/// How an address is called: not open where nobody answers, Error where its name is not known.
using Connect = std::function<TcpSocket(const Address&)>;

/// Another rank needs this to be recognized by rank 0.
struct RendezvousClient {
  /// Called when rank 0 has answered: it may have left the secret in a file shortly before.
  std::function<Secret()> find_secret;
  Connect caller = call;
};

/// Another rank: calls until rank 0 answers. Throws Error where it does not within the limits,
/// turns this process away, or does not have the secret.
SocketTransport connect_to_rank_0(const Address& address, const RankInfo& rank_info,
                                  const Limits& limits, const RendezvousClient& approach);

}  // namespace bubblescope::exec
