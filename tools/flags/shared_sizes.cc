// Passes the flags of both to a model and to the transformer that is run.
#include "tools/flags/shared_sizes.h"

#include <algorithm>
#include <string_view>

#include "sim/ir/error.h"
#include "sim/model/cost_assumptions.h"
#include "tools/flags/choice.h"
#include "tools/flags/heading.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kSharedHeading = "A model, or the transformer of --work transformer";

bool has_training(const RunOptions& run) {
  return !run.backend.empty() && run.work == WorkKind::kTransformer;
}

std::optional<MatrixType> find_matrix_type(std::string_view name) {
  for (const Named<MatrixType>& known : kMatrixTypes)
    if (known.name == name) return known.choice;
  return {};
}

std::optional<exec::Precision> find_precision(std::string_view name) {
  if (name == "fp32") return exec::Precision::kFloat32;
  if (name == "bf16") return exec::Precision::kBfloat16;
  return {};
}

void apply_precision(const std::string& name, ModelOptions& model, RunOptions& run) {
  if (name.empty()) return;
  const std::optional<MatrixType> matrices = find_matrix_type(name);
  const std::optional<exec::Precision> precision = find_precision(name);
  if (model.given() && !matrices)
    throw Error("--precision " + name + ": GEMMs of a model are in bf16, fp16 or fp8");
  if (has_training(run) && !precision)
    throw Error("--precision " + name +
                ": the transformer of --work transformer is in fp32 or bf16");
  model.matrices = matrices.value_or(model.matrices);
  if (precision) set_precision(run, *precision);
}

}  // namespace

void add_model_and_run_options(CommandFlags& app, ModelOptions& model, RunOptions& run,
                               SharedSizes& sizes) {
  add_configuration_options(app, model);
  const RunFlags flags{.has_sizes = false};
  add_run_options(app, run, flags);
  const Heading heading(app, kSharedHeading);
  app.add_option("--seq-length", sizes.sequence, "tokens of a sequence (default: the model's)")
      ->check(InRange(1, 1 << 24));
  app.add_option("--micro-batch-size", sizes.batch, "samples of a micro-batch")
      ->check(InRange(1, 65'536));
  add_choice<std::string>(
      app,
      {"--precision",
       "dtype of a model's GEMMs with weights (bf16, fp16, fp8), or of the transformer (fp32, "
       "bf16)"},
      {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}, {"fp8", "fp8"}},
      [&sizes](const std::string& name) { sizes.precision = name; });
}

void apply_shared_sizes(const SharedSizes& sizes, ModelOptions& model, RunOptions& run) {
  if (sizes.sequence) {
    model.sequence = sizes.sequence;
    if (has_training(run) && *sizes.sequence > kMaxTrainedSize)
      throw Error("--seq-length " + std::to_string(*sizes.sequence) +
                  ": the transformer of --work transformer takes at most " +
                  std::to_string(kMaxTrainedSize));
    run.training.model.sequence =
        static_cast<std::int32_t>(std::min<std::int64_t>(*sizes.sequence, kMaxTrainedSize));
  }
  if (sizes.batch) {
    model.parallel.micro_batch_size = *sizes.batch;
    run.training.model.batch = *sizes.batch;
  }
  apply_precision(sizes.precision, model, run);
}

void warn_of_unused_sizes(const CommandFlags& app, const ModelOptions& model,
                          const RunOptions& run) {
  // A global batch is divided into samples of --micro-batch-size without a model, too.
  if (!model.given() && !model.global_batch && !has_training(run))
    warn_of_unused(app, kSharedHeading, "without --model or --work transformer");
}

}  // namespace bubblescope::tools
