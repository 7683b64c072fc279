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
#include <array>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/format.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"
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

struct Word {
  std::string_view name;
  std::optional<OpKind> kind;  ///< nullopt for instructions without an op in our schedules
  bool has_buffer = true;
};

constexpr Word kWords[] = {
    {"LD", std::nullopt, true},          {"SA", OpKind::kSendForward, true},
    {"RA", OpKind::kRecvForward, true},  {"SG", OpKind::kSendBackward, true},
    {"RG", OpKind::kRecvBackward, true}, {"F", OpKind::kForward, true},
    {"B", OpKind::kBackward, true},      {"RTG", std::nullopt, false},
    {"RGD", std::nullopt, false},        {"OPT", std::nullopt, false},
};

/// Reads one rank's line. Buffer numbers are ignored: the n-th op of a kind belongs to micro-batch
/// n.
class LineReader {
 public:
  LineReader(std::int32_t rank, std::string where) : rank_(rank), where_(std::move(where)) {}

  RankOrder read(std::string_view line) {
    for (std::size_t step = 1; !(line = strip(line)).empty(); ++step) {
      std::string_view word = line.substr(0, line.find_first_of(" \t"));
      line.remove_prefix(word.size());
      if (word == "-") continue;
      for (bool more = true; more;) {
        const std::size_t plus = word.find('+');
        add(word.substr(0, plus), step);
        more = plus != word.npos;
        if (more) word.remove_prefix(plus + 1);
      }
    }
    return std::move(list_);
  }

 private:
  void add(std::string_view text, std::size_t step) {
    const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
    const std::string_view digits = text.substr(name.size());
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords),
                                    [&](const Word& known) { return known.name == name; });
    if (word == std::end(kWords))
      refuse(text, step, "is not an instruction; they are LD, F, B, SA, RA, SG, RG, RTG, RGD, OPT");
    if (word->has_buffer ? !parse_number<std::int32_t>(digits) : !digits.empty())
      refuse(text, step,
             word->has_buffer ? "needs its buffer's number, as in F0" : "has no buffer");
    if (!word->kind) return;
    std::int32_t& next = next_[static_cast<std::size_t>(*word->kind)];
    if (next > kMaxMicrobatch) refuse(text, step, "is one micro-batch too many");
    Op op = forward(rank_, next++);
    op.kind = *word->kind;
    list_.push_back(op);
  }

  [[noreturn]] void refuse(std::string_view text, std::size_t step, const char* what) const {
    throw Error(fmt::format("{}: step {}: {} {}", where_, step, quote(text), what));
  }

  std::int32_t rank_;
  std::string where_;
  RankOrder list_;
  std::array<std::int32_t, kOpKinds> next_{};
};

Schedule read_deepspeed(std::string_view text, const std::string& file) {
  std::vector<RankOrder> lists;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), row.size() + 1));
    if (strip(row).empty()) continue;
    lists.push_back(
        LineReader(static_cast<std::int32_t>(lists.size()), fmt::format("{}:{}", file, line))
            .read(row));
  }
  return infer_schedule(std::filesystem::path(file).stem().string(), std::move(lists),
                        [&](std::int32_t rank, std::size_t instruction) {
                          return fmt::format("{}: rank {}, instruction {}", file, rank,
                                             instruction + 1);
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
