// Real work: every op of a schedule trains its part of a transformer. After a step, the schedule
// must have made what a single rank would have made: losses, gradients, weights.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/backend.h"
#include "exec/processes.h"
#include "exec/training/held_bytes.h"
#include "exec/training/mailbox.h"
#include "exec/training/serial_training.h"
#include "exec/training/weight_versions.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// Throws Error for sliced sequences, ranks that share a stage, heads that do not divide the width,
/// and evictions into the memory of another process: the same in every process.
void expect_trainable(const Schedule& schedule, const TrainingOptions& options,
                      const Processes& processes = this_process_alone());

class Training {
 public:
  /// Its references are not copied; stages of other processes are not held here. Throws Error.
  Training(const Schedule& schedule, const Program& program, const TrainingOptions& options,
           const Processes& processes = this_process_alone());
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// Does the instructions of the program. The Training must outlive it.
  Work work();

  /// How its messages cross processes. The Training must outlive it.
  Cargo cargo();

  /// The end of a step, while nothing runs: sums replicas' gradients, updates the weights, unless
  /// the program's own optimizer steps have.
  void finish_step();

  /// Of all processes, each of which must call this.
  TrainingResult result() const;

  /// The most bytes of activations that each rank has held; of all processes too.
  std::vector<Bytes> peak_bytes() const;

 private:
  struct MicrobatchState {
    std::optional<Kept> kept;       ///< by the forward, in its rank's memory
    std::optional<Kept> elsewhere;  ///< in the keeper's memory
    bool complete = false;          ///< nothing is left to be made again
    std::optional<WeightWork> work;
    double loss = 0;
    Recompute recompute = Recompute::kNone;
    Bytes held = 0;
  };

  struct StageState {
    WeightVersions weights;
    std::vector<Matrix> gradients;
    std::vector<Matrix> last_gradients;  ///< those of the last update
    std::vector<MicrobatchState> microbatches;
  };

  /// Its rank's lanes take and give back, and those of ranks that evict to it.
  struct RankMemory {
    std::mutex mutex;
    Bytes held = 0;
    Bytes peak = 0;

    void add(Bytes bytes);
  };

  void run(const Turn& turn);
  bool runs_stage(std::int32_t stage) const;
  void carry(const Instruction& message, Damage damage);
  void compute_forward(const Op& op);
  void compute_again(const Op& op);
  void compute_input_grad(const Op& op);
  void compute_weight_grad(const Op& op);
  Matrix read(Direction direction, const Op& op);
  void write(Direction direction, const Op& op, Matrix matrix);
  void move_out(const Instruction& evict);
  void move_back(const Instruction& load);
  void hold(const Op& op, Bytes bytes);
  MicrobatchState& state_of(const Op& op);
  const Stage& weights_of(const Op& op) const;
  void update(std::size_t stage);
  Tokens tokens_of(const Op& op) const;
  void sum_replicas();

  const Schedule& schedule_;
  const Program& program_;
  const Processes& processes_;
  TrainingOptions options_;
  std::vector<std::vector<WeightUse>> uses_;
  float scale_;
  std::vector<StageState> stages_;
  std::vector<RankMemory> memory_;  ///< [rank]
  Mailbox inbox_;                   ///< at the stage that reads
  Mailbox outbox_;                  ///< at the stage that made it
  bool updates_inside_ = false;     ///< by the program's own optimizer steps
  std::vector<double> losses_;
};

/// What each op adds to its rank's memory, in bytes, for one schedule's stages; and what a forward
/// keeps where the rest is made again.
MemoryModel training_memory(const Schedule& schedule, const TrainingOptions& options);

}  // namespace bubblescope
