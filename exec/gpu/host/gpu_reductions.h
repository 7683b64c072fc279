// Gradients of stages whose weights several ranks hold, added up on their devices: every rank hands
// its own on, and takes the sum of all of them in one order, so that all have the same, bit for
// bit. Copies and sums are put on streams; who takes a sum stands behind all who hand on.
//
//   rank 0   hand on 0      take 0 + 1
//   rank 1        hand on 1    take 0 + 1
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_weights.h"

namespace bubblescope {

class GpuReductions {
 public:
  /// Room for what is handed on, where several homes of the same weights are in this process.
  /// Nothing is copied. Throws Error where a device is full.
  GpuReductions(const GpuMachine& machine, const Schedule& schedule, const GpuWeights& weights);

  /// While nothing runs.
  void begin_step();

  /// Copies a home's gradients to where the others find them. It may hand the next ones on when all
  /// have taken those before its last ones: whoever has taken a sum may.
  void hand_on(Home home, void* stream);

  /// A home's gradients become the sum of all that were handed on with its own, by stage and rank.
  void take_sum(Home home, void* stream);

  /// While nothing runs: both for all homes; returns when it is done.
  void sum_all();

  /// Whether several homes of the same weights are in this process.
  bool has_several() const;

 private:
  using Gradients = std::vector<GpuMatrix>;

  struct Handed {
    std::vector<Gradients> rounds;  ///< in turn; empty where a home has its weights alone
    GpuMatrix buffer;               ///< on the home's device, for what another one handed on
    std::size_t count = 0;          ///< so often in this step
  };

  bool is_shared(Home home) const { return !handed_[home].rounds.empty(); }
  void add_room(Home home, std::size_t rounds);
  GpuMatrix place(Home home, GpuMatrix shape);
  std::int32_t device_of(Home home) const;
  void copy(const GpuMatrix& to, const GpuMatrix& from, void* stream) const;
  void add(const GpuMatrix& to, const GpuMatrix& part, void* stream) const;
  void await() const;

  const GpuMachine& machine_;
  const GpuWeights& weights_;
  std::vector<Handed> handed_;  ///< [home]
  std::vector<GpuHandle> memory_;
  std::vector<GpuHandle> streams_;  ///< [device]
};

}  // namespace bubblescope
