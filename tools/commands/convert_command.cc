// convert: writes a schedule in another format.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/swapped_messages.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
#include "tools/commands/check_lists.h"
#include "tools/commands/exports.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/no_model.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/predict.h"
#include "tools/inputs/unused_flags.h"
#include "tools/print.h"
#include "traces/schedules/find_losses.h"
#include "traces/schedules/pytorch_csv.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kConvertExample =
    "example: a schedule for PyTorch's runtime, with its sends and receives\n"
    "  bubblescope convert interleaved --pp 4 --vpp 2 -m 8 --profile pytorch-2.15 --fsdp \\\n"
    "      --to pytorch-csv-comms -o schedule.csv\n";

const traces::ScheduleFormat& find_format(const std::string& name) {
  const auto& registry = Registry<traces::ScheduleFormat>::instance();
  if (const traces::ScheduleFormat* format = registry.find(name)) return *format;
  throw Error("no schedule format is called '" + name + "'" +
              suggestion(nearest_names(name, registry)) +
              " ('bubblescope list formats' shows them all)");
}

const Schedule& schedule_of(const ValidSchedule& valid) { return valid; }
const Schedule& schedule_of(const InvalidSchedule& invalid) { return invalid.schedule; }

std::vector<traces::FilePart> write_with_costs(const traces::ScheduleFormat& format,
                                               const ValidSchedule& schedule,
                                               const PredictInputs& inputs) {
  const Config& config = inputs.config();
  const Program program = lower_or_explain(schedule, choose_lowering(schedule, config));
  const Timing timing = find_timing(program, load_models(schedule, inputs), config);
  return format.write_priced({schedule, program, timing});
}

/// Warns about swapped messages: PyTorch's own deferral causes them, and then trains with wrong
/// gradients.
void warn_of_swapped(const ValidSchedule& schedule, ReceivePosting posting) {
  const Problems swapped = find_swapped_messages(schedule, make_posted_lists(schedule, posting));
  if (swapped.empty()) return;
  print_message(
      "bubblescope: {}: messages are received in another order than they are sent, and "
      "PyTorch computes with the wrong ones: rank {}: {}\n",
      schedule->name, *swapped.front().rank, to_string(swapped.front()));
}

/// Releases since 2.10 scale gradients where they reduce them, which earlier ones do not know.
void warn_of_unscaled(const ValidSchedule& schedule, PytorchRelease release) {
  if (release != PytorchRelease::kFrom26 || schedule->forward_only ||
      has_kind(schedule->posted, OpKind::kReduceGrad) || has_kind(schedule, OpKind::kReduceGrad))
    return;
  print_message(
      "bubblescope: PyTorch 2.10 to 2.14 scale and reduce gradients at REDUCE_GRAD, which 2.6 to "
      "2.9 do not know and these lists lack; add --fsdp for 2.10 to 2.14\n");
}

/// PyTorch's grammar can say more than its runtime runs.
void warn_of_pytorch(const traces::ScheduleFormat& format, const Schedule& schedule) {
  if (!format.name.starts_with("pytorch-csv")) return;
  const std::string reason = traces::why_not_pytorch_csv(schedule);
  if (!reason.empty()) print_message("bubblescope: {}\n", reason);
}

/// Reads back what was written, and says what of the schedule it does not hold.
std::string written(const traces::ScheduleFormat& format, const Schedule& schedule,
                    std::string text) {
  if (!format.read) return text;
  try {
    for (const std::string& loss : traces::find_losses(schedule, format.read(text, format.name)))
      print_message("bubblescope: {} as {} loses {}\n", schedule.name, format.name, loss);
  } catch (const Error& error) {
    print_message("bubblescope: what is written cannot be read back: {}\n", error.what());
  }
  return text;
}

std::string write_lists(const traces::ScheduleFormat& format, const std::string& name,
                        const ValidSchedule& schedule, const PredictOptions& options) {
  const ReceivePosting posting = options.cost.lower.posting;
  if (posting == ReceivePosting::kDeferred && posts_messages(schedule))
    throw Error(schedule->name +
                " posts its own messages, which stay where they are; leave --lowering out");
  if (options.cost.lower.send_budget &&
      choose_release(options.shape.profile) != PytorchRelease::kFrom215)
    throw Error(
        "--profile pytorch is of releases that never wait for a send; leave --send-budget out");
  warn_of_swapped(take_turns(schedule, name, options.shape), posting);
  warn_of_unscaled(schedule, choose_release(options.shape.profile));
  return format.write_lists(
      schedule, {choose_release(options.shape.profile), posting, options.cost.lower.send_budget,
                 takes_turns_of_215(name, options.shape)});
}

/// Refuses flags that say where messages go, for formats without any.
void expect_no_message_flags(const traces::ScheduleFormat& format, const PredictOptions& options,
                             bool has_lowering) {
  if (format.write_lists) return;
  if (options.cost.lower.send_budget)
    throw Error(fmt::format("--send-budget moves waits for sends, and {} has none; leave it out",
                            format.name));
  if (has_lowering)
    throw Error(fmt::format(
        "--lowering says where receives are posted, and {} has none; leave it out", format.name));
}

std::vector<traces::FilePart> write(const traces::ScheduleFormat& format, const std::string& name,
                                    const PredictInputs& inputs) {
  // Our own formats may also contain unfinished schedules.
  if (format.write && !format.for_runtimes)
    return std::visit(
        [&](const auto& loaded) -> std::vector<traces::FilePart> {
          const Schedule& schedule = schedule_of(loaded);
          return {{"", written(format, schedule, format.write(schedule))}};
        },
        load_schedule(name, inputs, CostUse::kOrderOnly));
  const CostUse use = format.write_priced ? CostUse::kPriced : CostUse::kOrderOnly;
  const ValidSchedule schedule = load_valid_schedule(name, inputs, use);
  if (format.write_priced) return write_with_costs(format, schedule, inputs);
  if (format.for_runtimes) lower_or_explain(schedule, {});
  std::string text = format.write_lists ? write_lists(format, name, schedule, inputs.flags())
                                        : format.write(schedule);
  warn_of_pytorch(format, schedule);  // after what the format refuses, often for the same reason
  return {{"", written(format, schedule, std::move(text))}};
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CommandFlags app{"Write a schedule in another format", "bubblescope convert"};
  std::string schedule;
  std::string format;
  std::string output = "-";
  PredictOptions flags;
  app.add_option("SCHEDULE", schedule, "a name ('bubblescope list'), a file, or - for stdin")
      ->required();
  app.add_option("--to", format, "the format ('bubblescope list formats')")
      ->required()
      ->type_name("FORMAT");
  app.add_option("-o,--output", output, "the file to write (default: -, stdout)")
      ->type_name("FILE");
  add_predict_options(app, flags);
  flags.command += " --to text";
  add_held_memory_options(app, flags);
  add_loss_option(app, flags);
  app.footer(kConvertExample);
  expect_no_model(arguments, "convert",
                  "'bubblescope simulate --model' with --save or --timeline writes a step with a "
                  "model's times");
  if (!app.parse(arguments)) return 0;
  const traces::ScheduleFormat& to = find_format(format);
  if (output.empty()) throw Error("-o has an empty file name");
  expect_no_message_flags(to, flags, app.count("--lowering") > 0);
  const PredictInputs inputs = read_inputs(std::move(flags), {schedule});
  if (!to.write_priced) warn_of_unwritten_flags(inputs.flags(), schedule);
  const bool has_lists = to.write_lists && is_of_pytorch(inputs.flags().shape.profile);
  warn_of_file_shapes(inputs.flags(), {schedule},
                      has_lists ? ProfileUse::kLists : ProfileUse::kOrder);
  const std::vector<traces::FilePart> parts = write(to, schedule, inputs);
  if (output == "-" && !parts.front().suffix.empty())
    throw Error(fmt::format("{} is {}; give -o PREFIX, and they are PREFIX{} and so on", to.name,
                            counted(std::ssize(parts), "file"), parts.front().suffix));
  for (const traces::FilePart& part : parts) write_and_report(output + part.suffix, part.content);
  return 0;
}

}  // namespace bubblescope::tools
