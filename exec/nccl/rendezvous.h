// The rendezvous: all processes of a run connect to rank 0. Both ends of each connection prove that
// they have the run's secret, which is not sent:
//
//   rank 0 -> caller   challenge: version, a nonce
//   caller -> rank 0   hello: its rank, the number of ranks, a nonce, HMAC(secret, all of these)
//   rank 0 -> caller   welcome, when all have connected: HMAC(secret, the same for rank 0)
#pragma once

#include <functional>

#include "exec/nccl/secret.h"
#include "exec/nccl/socket_transport.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// The data with which rank 0 authenticates the other ranks.
struct RendezvousServer {
  Secret secret;
  /// Called once, for the first caller without the secret.
  std::function<void(const std::string&)> warn = {};
};

/// Accepts connections at rank 0 until all other ranks have joined. Foreign callers are turned
/// away, the number of pending callers is limited, and each has some seconds to authenticate.
/// Throws Error that names the ranks that have not joined within the limits.
SocketTransport accept_ranks(const TcpSocket& listener, std::int32_t count, const Limits& limits,
                             const RendezvousServer& server);

/// Connects to an address. The result is not open if there is no answer. Throws Error if the host
/// name cannot be resolved.
using Connect = std::function<TcpSocket(const Address&)>;

/// The data with which another rank authenticates itself to rank 0.
struct RendezvousClient {
  /// Called when rank 0 has answered, since rank 0 may have just written the secret to a file.
  std::function<Secret()> find_secret;
  Connect connect = connect_to;
};

/// Connects another rank to rank 0, and retries until rank 0 answers. Throws Error if it does not
/// within the limits, refuses this process, or does not have the secret.
SocketTransport connect_to_rank_0(const Address& address, const RankInfo& rank_info,
                                  const Limits& limits, const RendezvousClient& client);

}  // namespace bubblescope::exec
