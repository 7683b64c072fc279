// This process's door to the others: letters on channels, over MPI. MPI itself is in a module,
// bubblescope_mpi.so, which is opened when the first letter is to be sent.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/blob.h"
#include "exec/mpi_module.h"

namespace bubblescope {

enum class Channel : std::uint8_t {
  kStep,     ///< instructions that have ended, with what they carry
  kCopy,     ///< what copies move from one rank's memory to another's, and the answers
  kControl,  ///< signs of life, and the order to stop
  kClock,    ///< comparing clocks, and when a step begins
  kShare,    ///< everyone's bytes for everyone
  kLeave,    ///< the end
};

struct Letter {
  std::int32_t peer = 0;
  Blob bytes;
};

/// Any thread may call; MPI sees one call at a time. What MPI refuses is thrown as Error.
class MpiPort {
 public:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  explicit MpiPort(const std::string& module_file);

  std::int32_t rank() const { return world_.rank; }
  std::int32_t count() const { return world_.size; }
  std::string library() const { return world_.library; }

  void send(std::int32_t peer, Channel channel, Blob bytes);
  void send_all(Channel channel, const Blob& bytes);

  /// What has come on a channel, at most so many letters. Nothing, too, while another thread looks.
  std::vector<Letter> look(Channel channel, std::size_t most = kAll);

  /// Everyone's bytes, by rank; those of a rank that had not answered when `gives_up` became true
  /// are missing, and it counts as gone from then on.
  std::vector<std::optional<Blob>> share(Blob own, const std::function<bool()>& gives_up);

  bool is_gone(std::int32_t rank) const { return gone_[static_cast<std::size_t>(rank)]; }
  bool all_answer() const;

  /// Ends MPI; all processes must do so.
  void close();

 private:
  /// A message on its way: its bytes must not move.
  struct Transfer {
    void* ticket = nullptr;
    Channel channel = Channel::kStep;
    Letter letter;
  };

  void drop_sent();
  void receive_found(Channel channel);

  std::mutex mutex_;
  BubblescopeMpiWorld world_{};
  decltype(&bubblescope_mpi_send) send_ = nullptr;
  decltype(&bubblescope_mpi_find) find_ = nullptr;
  decltype(&bubblescope_mpi_receive) receive_ = nullptr;
  decltype(&bubblescope_mpi_is_done) is_done_ = nullptr;
  decltype(&bubblescope_mpi_close) close_ = nullptr;
  std::list<Transfer> sent_;
  std::list<Transfer> coming_;
  std::vector<bool> gone_;
  std::uint64_t shares_ = 0;
  std::vector<Letter> early_;  ///< shares of others that are one ahead
};

/// The one of this process; opens the module, and starts MPI, when first called. Throws Error with
/// what to install where it cannot.
MpiPort& open_mpi();

}  // namespace bubblescope
