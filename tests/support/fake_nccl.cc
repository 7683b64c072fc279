// Simulates communicators over sockets.
#include "tests/support/fake_nccl.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "exec/runtime/blob.h"

namespace bubblescope::tests {

namespace {

struct FakeCommunicator {
  std::uint64_t id = 0;
  std::vector<std::int32_t> members;  ///< ids among all processes
  std::uint64_t splits = 0;
  /// Operations in progress, in order; each returns whether it is done.
  std::deque<std::function<bool()>> pending;
};

struct Head {
  std::uint64_t communicator = 0;
  std::uint64_t size = 0;
};

/// A connection to another process.
struct Neighbour {
  int socket = -1;
  bool is_gone = false;
  exec::Blob coming;
  std::map<std::uint64_t, std::deque<exec::Blob>> come;  ///< received, by communicator
};

struct State {
  FakeNccl nccl;
  std::int32_t rank = 0;
  std::uint64_t ids = 0;
  std::vector<std::vector<int>> sockets;  ///< [process][other]
  std::vector<Neighbour> neighbours;
  std::string error;
};

std::unique_ptr<State>& made() {
  static auto state = std::make_unique<State>();
  return state;
}

State& state() { return *made(); }

const char* answer(const char* call) {
  return state().nccl.fails_at == call ? "the fake NCCL fails as it was told" : nullptr;
}

void receive_from(Neighbour& from) {
  std::byte bytes[65'536];
  for (;;) {
    const ssize_t count = recv(from.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count == 0) from.is_gone = true;
    if (count <= 0) break;
    from.coming.insert(from.coming.end(), bytes, bytes + count);
  }
  Head head;
  while (from.coming.size() >= sizeof head) {
    std::memcpy(&head, from.coming.data(), sizeof head);
    if (from.coming.size() - sizeof head < head.size) return;
    const auto begin = from.coming.begin() + sizeof head;
    const auto end = begin + static_cast<std::ptrdiff_t>(head.size);
    from.come[head.communicator].emplace_back(begin, end);
    from.coming.erase(from.coming.begin(), end);
  }
}

void receive_all() {
  for (Neighbour& from : state().neighbours)
    if (from.socket >= 0 && !from.is_gone) receive_from(from);
}

/// Sends all bytes. The other processes receive whenever they wait.
void post(std::int32_t to, std::uint64_t communicator, const void* data, std::size_t size) {
  const Head head{communicator, size};
  exec::Blob bytes(sizeof head + size);
  std::memcpy(bytes.data(), &head, sizeof head);
  if (size != 0) std::memcpy(bytes.data() + sizeof head, data, size);
  Neighbour& neighbour = state().neighbours[static_cast<std::size_t>(to)];
  for (std::size_t sent = 0; sent < bytes.size() && !neighbour.is_gone;) {
    const ssize_t count = send(neighbour.socket, bytes.data() + sent, bytes.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0)
      sent += static_cast<std::size_t>(count);
    else
      receive_all();
  }
}

std::optional<exec::Blob> take(std::int32_t from, std::uint64_t communicator) {
  std::deque<exec::Blob>& come =
      state().neighbours[static_cast<std::size_t>(from)].come[communicator];
  if (come.empty()) {
    if (state().neighbours[static_cast<std::size_t>(from)].is_gone)
      state().error = "the fake NCCL: a remote process has exited";
    return std::nullopt;
  }
  exec::Blob first = std::move(come.front());
  come.pop_front();
  return first;
}

FakeCommunicator& of(void* handle) { return *static_cast<FakeCommunicator*>(handle); }

/// Waits for one message of every other member, then calls `then` with all messages, by member.
std::function<bool()> await_all(FakeCommunicator& at,
                                const std::function<void(const std::vector<exec::Blob>&)>& then) {
  auto got = std::make_shared<std::map<std::int32_t, exec::Blob>>();
  return [&at, got, then] {
    for (const std::int32_t member : at.members) {
      if (member == state().rank || got->count(member) != 0) continue;
      std::optional<exec::Blob> bytes = take(member, at.id);
      if (!bytes) return false;
      (*got)[member] = std::move(*bytes);
    }
    std::vector<exec::Blob> all;
    for (const std::int32_t member : at.members) all.push_back((*got)[member]);
    then(all);
    return true;
  };
}

void tell_all(const FakeCommunicator& at, const void* data, std::size_t size) {
  for (const std::int32_t member : at.members)
    if (member != state().rank) post(member, at.id, data, size);
}

const char* join(std::int32_t, std::int32_t, std::int32_t count, const BubblescopeNcclId* id,
                 void** made) {
  if (const char* const error = answer("join")) return error;
  auto* const all = new FakeCommunicator;
  std::memcpy(&all->id, id->bytes, sizeof all->id);
  for (std::int32_t member = 0; member < count; ++member) all->members.push_back(member);
  ++state().nccl.communicators;
  *made = all;
  return nullptr;
}

const char* split(void* from, std::int32_t color, std::int32_t rank, void** made) {
  if (const char* const error = answer("split")) return error;
  FakeCommunicator& all = of(from);
  auto* const part = color == kBubblescopeNoColor ? nullptr : new FakeCommunicator;
  if (part != nullptr) {
    ++state().nccl.communicators;
    part->id = all.id * 1'000'003 + 1'009 * ++all.splits + static_cast<std::uint64_t>(color);
  } else {
    ++all.splits;
  }
  tell_all(all, &color, sizeof color);
  all.pending.push_back(
      await_all(all, [part, &all, color, rank](const std::vector<exec::Blob>& told) {
        for (std::size_t at = 0; at < told.size() && part != nullptr; ++at) {
          std::int32_t other = color;
          if (all.members[at] != rank) std::memcpy(&other, told[at].data(), sizeof other);
          if (other == color) part->members.push_back(all.members[at]);
        }
      }));
  *made = part;
  return nullptr;
}

const char* get_async_error(void* communicator, std::int32_t* under_way) {
  if (const char* const error = answer("ask")) return error;
  receive_all();
  auto& pending = of(communicator).pending;
  while (!pending.empty() && pending.front()()) pending.pop_front();
  *under_way = pending.empty() ? 0 : 1;
  return state().error.empty() ? nullptr : state().error.c_str();
}

const char* receive(void* communicator, void* to, std::size_t bytes, std::int32_t peer, void*) {
  if (const char* const error = answer("receive")) return error;
  FakeCommunicator& at = of(communicator);
  const std::int32_t from = at.members[static_cast<std::size_t>(peer)];
  at.pending.push_back([&at, from, to, bytes] {
    const std::optional<exec::Blob> come = take(from, at.id);
    if (!come) return false;
    if (come->size() != bytes) state().error = "NCCL: sizes differ between sender and receiver";
    std::memcpy(to, come->data(), std::min(bytes, come->size()));
    return true;
  });
  return nullptr;
}

/// Later work on the device runs at once, so this waits until the sum is complete.
const char* sum(void* communicator, void* values, std::size_t count, void*) {
  if (const char* const error = answer("sum")) return error;
  FakeCommunicator& at = of(communicator);
  tell_all(at, values, count * sizeof(float));
  at.pending.push_back(await_all(at, [&at, values, count](const std::vector<exec::Blob>& told) {
    auto* const to = static_cast<float*>(values);
    const std::vector<float> own(to, to + count);
    std::fill(to, to + count, 0.0F);
    for (std::size_t member = 0; member < told.size(); ++member) {
      std::vector<float> from = own;
      if (at.members[member] != state().rank) {
        if (told[member].size() != count * sizeof(float))
          state().error = "NCCL: sizes differ between ranks of a sum";
        std::memcpy(from.data(), told[member].data(),
                    std::min(told[member].size(), count * sizeof(float)));
      }
      for (std::size_t entry = 0; entry < count; ++entry) to[entry] += from[entry];
    }
  }));
  return nullptr;
}

/// Like a message, this waits until the data has arrived.
const char* broadcast(void* communicator, void* data, std::size_t bytes, std::int32_t member,
                      void*) {
  if (const char* const error = answer("spread")) return error;
  ++state().nccl.spreads;
  FakeCommunicator& at = of(communicator);
  if (at.members[static_cast<std::size_t>(member)] == state().rank) {
    tell_all(at, data, bytes);
    return nullptr;
  }
  return receive(communicator, data, bytes, member, nullptr);
}

const char* reduce(void* communicator, void* values, std::size_t count, std::int32_t member,
                   void*) {
  if (const char* const error = answer("sum_at")) return error;
  FakeCommunicator& at = of(communicator);
  const std::int32_t owner = at.members[static_cast<std::size_t>(member)];
  auto* const to = static_cast<float*>(values);
  if (owner != state().rank) {
    post(owner, at.id, values, count * sizeof(float));
    std::fill(to, to + count, std::numeric_limits<float>::quiet_NaN());  // undefined
    return nullptr;
  }
  at.pending.push_back(await_all(at, [&at, to, count](const std::vector<exec::Blob>& told) {
    std::vector<float> from(count);
    for (std::size_t other = 0; other < told.size(); ++other) {
      if (at.members[other] == state().rank) continue;
      if (told[other].size() != count * sizeof(float))
        state().error = "NCCL: sizes differ between ranks of a sum";
      std::memcpy(from.data(), told[other].data(),
                  std::min(told[other].size(), count * sizeof(float)));
      for (std::size_t entry = 0; entry < count; ++entry) to[entry] += from[entry];
    }
  }));
  return nullptr;
}

BubblescopeNccl make_calls() {
  BubblescopeNccl calls{};
  calls.version = [](std::int32_t* version) {
    *version = 22'809;
    return answer("version");
  };
  calls.get_pci_bus_id = [](std::int32_t, char name[32]) {
    std::strcpy(name, "0000:01:00.0");
    return answer("identify");
  };
  calls.get_unique_id = [](BubblescopeNcclId* id) {
    const std::uint64_t made = 7'919 * ++state().ids;
    std::memcpy(id->bytes, &made, sizeof made);
    return answer("make_id");
  };
  calls.join = join;
  calls.split = split;
  calls.get_async_error = get_async_error;
  calls.abort = [](void* communicator) {
    FakeNccl& nccl = state().nccl;
    if (!std::exchange(nccl.was_aborted, true) && nccl.at_abort) nccl.at_abort();
    of(communicator).pending.clear();
  };
  calls.release = [](void* communicator) {
    --state().nccl.communicators;
    if (!of(communicator).pending.empty()) state().nccl.was_released_under_way = true;
    delete &of(communicator);
  };
  calls.group_start = [] { return answer("begin_group"); };
  calls.group_end = [] {
    ++state().nccl.groups;
    return answer("end_group");
  };
  calls.send = [](void* communicator, const void* from, std::size_t bytes, std::int32_t peer,
                  void*) {
    if (const char* const error = answer("send")) return error;
    const FakeCommunicator& at = of(communicator);
    post(at.members[static_cast<std::size_t>(peer)], at.id, from, bytes);
    return answer("none");
  };
  calls.receive = receive;
  calls.sum = sum;
  calls.reduce = reduce;
  calls.broadcast = broadcast;
  return calls;
}

}  // namespace

void open_fake_nccl(std::int32_t processes) {
  const auto count = static_cast<std::size_t>(processes);
  made() = std::make_unique<State>();
  state().sockets.assign(count, std::vector<int>(count, -1));
  for (std::size_t left = 0; left < count; ++left)
    for (std::size_t right = left + 1; right < count; ++right) {
      int ends[2] = {-1, -1};
      socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
      state().sockets[left][right] = ends[0];
      state().sockets[right][left] = ends[1];
    }
}

FakeNccl& fake_nccl() { return state().nccl; }

void enter_fake_nccl(std::int32_t rank) {
  state().rank = rank;
  const auto here = static_cast<std::size_t>(rank);
  const auto& sockets = state().sockets;
  for (std::size_t process = 0; process < sockets.size(); ++process)
    for (const int socket : sockets[process])
      if (process != here && socket >= 0) close(socket);
  if (here >= sockets.size()) return;
  for (const int socket : sockets[here]) {
    state().neighbours.emplace_back();
    state().neighbours.back().socket = socket;
  }
}

const BubblescopeNccl& fake_nccl_calls() {
  static const BubblescopeNccl calls = make_calls();
  return calls;
}

}  // namespace bubblescope::tests
