// The processes that run one Program together: this one alone, or one per rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "exec/blob.h"

namespace bubblescope {

class Processes {
 public:
  /// What several processes need of whatever connects them.
  struct Link {
    std::int32_t rank = 0;   ///< of this process: it runs the ops of this rank
    std::int32_t count = 1;  ///< of processes
    /// Gives everyone's bytes to everyone, by rank. Every process calls it, in the same order.
    /// Throws Error where one of them does not answer.
    std::function<std::vector<Blob>(Blob)> share;
    /// The lowest rank whose process still answers.
    std::function<std::int32_t()> speaker;
    /// Waits until the speaker has come here, and ends the link.
    std::function<void()> leave;
    /// Tells the others to go on waiting. Any thread may call it while nothing is shared.
    std::function<void()> show_life = {};
  };

  /// This process alone.
  Processes() = default;
  explicit Processes(Link link) : link_(std::move(link)) {}
  ~Processes() {
    if (link_) link_->leave();
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  std::int32_t count() const { return link_ ? link_->count : 1; }

  /// The only rank that runs here; empty: all of them do.
  std::optional<std::int32_t> here() const {
    return link_ ? std::optional(link_->rank) : std::nullopt;
  }
  bool runs(std::int32_t rank) const { return !link_ || link_->rank == rank; }

  /// Whether this process is the one that prints and writes files.
  bool speaks() const { return !link_ || link_->speaker() == link_->rank; }

  void show_life() const {
    if (link_ && link_->show_life) link_->show_life();
  }

  /// Everyone's bytes, by rank; alone, one's own.
  std::vector<Blob> share(Blob own) const {
    if (link_) return link_->share(std::move(own));
    std::vector<Blob> all;
    all.push_back(std::move(own));
    return all;
  }

 private:
  std::optional<Link> link_;
};

inline const Processes& this_process_alone() {
  static const Processes alone;
  return alone;
}

}  // namespace bubblescope
