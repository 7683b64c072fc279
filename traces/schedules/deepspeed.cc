// DeepSpeed's instruction streams: the instructions of TrainSchedule (1F1B) and InferenceSchedule
// for each rank, with one line per rank and one word per step.
//
//   LD0+F0 SA0 LD1+F1 RG0+SA1+B0 - RG1+B1+RTG+RGD+OPT
//   - RA0+LD0+F0 B0 SG0+RA1+LD1+F1 B1 SG1+RTG+RGD+OPT
//
// LD LoadMicroBatch, F ForwardPass, B BackwardPass, SA/RA Send/RecvActivation, SG/RG Send/RecvGrad,
// each with its buffer; RTG ReduceTiedGrads, RGD ReduceGrads, OPT OptimizerStep; - is an empty
// step. Micro-batch i uses buffer i mod (number of buffers). With m micro-batches on p ranks,
// TrainSchedule has 2(m+p-1) steps, F of micro-batch i on rank r in step 2i+r and its B in step
// 2(i+p)-r-1; InferenceSchedule has m+p-1 steps, F in step i+r.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/schedules/deepspeed_streams.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::traces {

namespace {

/// The instructions of one step.
class StepText {
 public:
  void add(std::string_view name, std::optional<std::int32_t> buffer = {}) {
    if (!text_.empty()) text_ += '+';
    text_ += name;
    if (buffer) text_ += std::to_string(*buffer);
  }
  std::string take() && { return text_.empty() ? "-" : std::move(text_); }

 private:
  std::string text_;
};

/// One rank of a pipeline of p ranks and m micro-batches.
struct Place {
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;

  bool is_first() const { return rank == 0; }
  bool is_last() const { return rank + 1 == ranks; }
  std::optional<std::int32_t> valid(std::int32_t microbatch) const {
    if (microbatch < 0 || microbatch >= microbatches) return {};
    return microbatch;
  }
};

/// A rank's work in a step of TrainSchedule: even steps are forwards on even ranks, and so on.
struct TrainStep {
  bool forward = true;
  std::optional<std::int32_t> microbatch;
};

TrainStep train_step(const Place& place, std::int32_t step) {
  const bool forward = (step - place.rank) % 2 == 0;
  const std::int32_t twice = forward ? step - place.rank : step + place.rank + 1 - 2 * place.ranks;
  return {forward, place.valid(twice < 0 ? twice : twice / 2)};
}

std::vector<std::string> train_stream(const Place& place) {
  const std::int32_t buffers = std::max(2, std::min(place.ranks - place.rank, place.microbatches));
  const std::int32_t steps = 2 * (place.microbatches + place.ranks - 1);
  const auto buffer = [&](std::int32_t microbatch) { return microbatch % buffers; };
  std::vector<std::string> stream;
  for (std::int32_t step = 0; step < steps; ++step) {
    const TrainStep now = train_step(place, step);
    const std::optional<std::int32_t> before = train_step(place, step - 1).microbatch;
    StepText text;
    if (now.forward) {
      if (before && !place.is_first()) text.add("SG", buffer(*before));
      if (now.microbatch && !place.is_first()) text.add("RA", buffer(*now.microbatch));
    } else {
      if (now.microbatch && !place.is_last()) text.add("RG", buffer(*now.microbatch));
      if (before && !place.is_last()) text.add("SA", buffer(*before));
    }
    if (now.microbatch) {
      if (now.forward && (place.is_first() || place.is_last()))
        text.add("LD", buffer(*now.microbatch));
      text.add(now.forward ? "F" : "B", buffer(*now.microbatch));
    }
    if (step + 1 == steps)
      for (const char* name : {"RTG", "RGD", "OPT"}) text.add(name);
    stream.push_back(std::move(text).take());
  }
  return stream;
}

std::vector<std::string> inference_stream(const Place& place) {
  std::vector<std::string> stream;
  for (std::int32_t step = 0; step < place.microbatches + place.ranks - 1; ++step) {
    const std::optional<std::int32_t> now = place.valid(step - place.rank);
    const std::optional<std::int32_t> before = place.valid(step - place.rank - 1);
    StepText text;
    if (now && (place.is_first() || place.is_last())) text.add("LD", *now % 2);
    const auto send = [&] {
      if (before && !place.is_last()) text.add("SA", *before % 2);
    };
    if (place.rank % 2 == 0) send();
    if (now && !place.is_first()) text.add("RA", *now % 2);
    if (place.rank % 2 != 0) send();
    if (now) text.add("F", *now % 2);
    stream.push_back(std::move(text).take());
  }
  return stream;
}

/// The order in which DeepSpeed's schedule runs a rank's ops.
RankOrder deepspeed_order(const Place& place, bool forward_only) {
  RankOrder order;
  if (forward_only) {
    for (std::int32_t at = 0; at < place.microbatches; ++at)
      order.push_back(forward(place.rank, at));
    return order;
  }
  for (std::int32_t step = 0; step < 2 * (place.microbatches + place.ranks - 1); ++step) {
    const TrainStep now = train_step(place, step);
    if (now.microbatch)
      order.push_back(now.forward ? forward(place.rank, *now.microbatch)
                                  : backward(place.rank, *now.microbatch));
  }
  return order;
}

std::string write_deepspeed(const Schedule& schedule) {
  refuse_after_edges(schedule, "DeepSpeed");
  refuse_graph(schedule, "DeepSpeed");
  std::string out;
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank) {
    const Place place{rank, schedule.shape.ranks, schedule.shape.microbatches};
    if (schedule.order[rank] != deepspeed_order(place, schedule.forward_only))
      throw Error(fmt::format(
          "DeepSpeed has no schedule that runs rank {} as {} does: its TrainSchedule is 1f1b, its "
          "InferenceSchedule forward-only, both with one stage per rank; convert one of those",
          rank, schedule.name));
    const std::vector<std::string> stream =
        schedule.forward_only ? inference_stream(place) : train_stream(place);
    for (const std::string& step : stream) out += (&step == &stream.front() ? "" : " ") + step;
    out += '\n';
  }
  return out;
}

Schedule read_deepspeed(std::string_view text, const std::string& file) {
  return infer_schedule(
      std::filesystem::path(file).stem().string(), read_deepspeed_streams(text, file),
      [&](std::int32_t rank, std::size_t instruction) {
        return fmt::format("{}: rank {}, instruction {}", file, rank, instruction + 1);
      });
}

/// The first rank starts by loading a micro-batch, and no other format starts with a letter.
bool recognize_deepspeed(std::string_view text) { return text.starts_with("LD"); }

const Registrar<ScheduleFormat> deepspeed_registrar{[] {
  return ScheduleFormat{"deepspeed",
                        {},
                        "DeepSpeed's instruction streams (TrainSchedule, InferenceSchedule)",
                        write_deepspeed,
                        read_deepspeed,
                        recognize_deepspeed,
                        true};
}};

}  // namespace

}  // namespace bubblescope::traces
