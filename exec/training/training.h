// Real work: every op of a schedule trains its part of a transformer. After a step, the schedule
// must have made what a single rank would have made: losses, gradients, weights.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/backend.h"
#include "exec/processes.h"
#include "exec/training/mailbox.h"
#include "exec/training/optimizer.h"
#include "exec/training/transformer.h"
#include "exec/training/weight_versions.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

struct TrainingOptions {
  TransformerShape model;
  OptimizerOptions optimizer;
  std::uint64_t seed = 1;  ///< of weights and data
};

/// What some steps of training leave behind. The stages are those of the model: a replica of a
/// bidirectional schedule has its original's gradients and weights.
struct TrainingResult {
  std::vector<double> losses;                  ///< per step, the mean over its micro-batches
  std::vector<std::vector<Matrix>> gradients;  ///< [stage], of the last update
  std::vector<Stage> stages;                   ///< [stage], after the last step
};

/// Data that can be learnt: each token follows from the one before it by a fixed rule.
Tokens make_tokens(const TrainingOptions& options, std::int32_t step, std::int32_t microbatch);
/// Throws Error for sliced sequences, ranks that share a stage, heads that do not divide the width.
void expect_trainable(const Schedule& schedule, const TrainingOptions& options);

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

  /// The end of a step, while nothing runs: sums replicas' gradients, updates the weights.
  void finish_step();

  /// Of all processes, each of which must call this.
  TrainingResult result() const;

  /// The most bytes of activations that each rank has held; of all processes too.
  std::vector<Bytes> peak_bytes() const;

 private:
  struct MicrobatchState {
    std::optional<Activations> saved;
    Matrix input;  ///< where the forward will be recomputed
    std::optional<WeightWork> work;
    double loss = 0;
    bool recomputes = false;
    Bytes held = 0;
  };

  struct StageState {
    WeightVersions weights;
    std::vector<Matrix> gradients;
    std::vector<Matrix> last_gradients;  ///< those of the last update
    std::vector<MicrobatchState> microbatches;
  };

  struct RankMemory {
    Bytes held = 0;
    Bytes peak = 0;
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
  std::vector<RankMemory> memory_;  ///< [rank]; each is touched by its rank's lane only
  Mailbox inbox_;                   ///< at the stage that reads
  Mailbox outbox_;                  ///< at the stage that made it
  std::vector<double> losses_;
};

/// The same steps on one rank, micro-batch after micro-batch, each on the versions of the weights
/// that the schedule prescribes: the judge.
TrainingResult train_serially(const Schedule& schedule, const TrainingOptions& options,
                              std::int32_t steps);

/// What each op adds to its rank's memory, in bytes, for one schedule's stages.
std::vector<MemoryDelta> training_memory(const Schedule& schedule, const TrainingOptions& options);

}  // namespace bubblescope
