// Agrees with the other processes on what is whole, and measures what saving costs.
#include "tools/commands/checkpoints.h"

#include <fmt/format.h>

#include <utility>

#include "exec/runtime/heartbeat.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "tools/flags/field_names.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

std::string_view as_text(const exec::Blob& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Returns the bytes and the time of one checkpoint on average.
SavedCheckpoint mean_of(const std::vector<SavedCheckpoint>& saved) {
  SavedCheckpoint mean;
  const auto count = static_cast<std::int64_t>(saved.size());
  for (const SavedCheckpoint& each : saved) {
    mean.bytes += each.bytes;
    mean.time += each.time;
  }
  if (count > 0) mean.bytes /= count;
  if (count > 0) mean.time /= count;
  return mean;
}

/// Returns the fraction of the training's time that is spent on saving.
double time_share(const CheckpointReport& report, Nanos step) {
  const Nanos saving = mean_of(report.saved).time;
  return fraction(saving, saving + step * report.every);
}

}  // namespace

Checkpoints::Checkpoints(const CheckpointOptions& options, exec::TrainingIdentity identity,
                         const exec::Processes& processes)
    : options_(options),
      identity_(std::move(identity)),
      processes_(processes),
      folder_(options.folder),
      report_{options.folder, options.every} {}

/// Works in every process, and returns what each of them wrote. If one fails, all throw its Error.
std::vector<exec::Blob> Checkpoints::gather_results(
    const std::function<void(exec::BlobWriter&)>& work) {
  exec::BlobWriter result;
  std::string failure;
  Fault fault = Fault::kUsage;
  try {
    const exec::Heartbeat others_wait(processes_);
    work(result);
  } catch (const Error& error) {
    failure = error.what();
    fault = error.fault();
  }
  exec::BlobWriter own;
  own.write_text(failure);
  own.write(fault);
  own.write_all(result.take());
  std::vector<exec::Blob> results;
  for (const exec::Blob& blob : processes_.gather(own.take())) {
    exec::BlobReader reader(blob);
    const std::string other_failure = reader.read_text();
    const auto other_fault = reader.read<Fault>();
    if (!other_failure.empty()) throw Error(other_fault, other_failure);
    results.push_back(reader.read_all<std::byte>());
  }
  return results;
}

void Checkpoints::print_once(const std::string& message) const {
  if (is_first()) print_message("{}\n", name_flags(message));
}

/// Manifests from which this run may resume, as texts, the newest first.
std::vector<std::string> Checkpoints::find_candidates(std::int32_t total) {
  const traces::FoundCheckpoints found = folder_.find();
  if (!options_.resume) {
    if (found.manifests.empty() && found.faults.empty()) return {};
    throw Error(
        options_.folder +
        " has checkpoints already: add --resume to continue from them, or give another folder");
  }
  for (const std::string& fault : found.faults) print_once(fault);
  if (found.manifests.empty() && !found.faults.empty())
    throw Error("no checkpoint in " + options_.folder + " is whole: " + found.faults.front() +
                "; give another folder to begin again");
  std::vector<std::string> texts;
  for (const traces::CheckpointManifest& manifest : found.manifests) {
    expect_usable(manifest, total);
    if (manifest.step < total) texts.push_back(traces::write_manifest(manifest));
  }
  return texts;
}

void Checkpoints::expect_usable(const traces::CheckpointManifest& manifest,
                                std::int32_t total) const {
  const std::string name = options_.folder + '/' + traces::manifest_name(manifest.step);
  const std::string differences =
      name_flags(exec::describe_differences(manifest.training, identity_));
  if (!differences.empty())
    throw Error(name + " is of another training: " + differences +
                "; give the flags of that run, or another folder");
  if (manifest.step > total)
    throw Error(fmt::format(
        "{} is later than the end of this run, which has {} with its warm-up; give more --steps",
        name, counted(total, "step")));
}

/// Processes may see a shared folder at different times, so rank 0 looks and sends the others what
/// it has found.
std::vector<traces::CheckpointManifest> Checkpoints::agree_on_candidates(std::int32_t total) {
  const std::vector<exec::Blob> results = gather_results([&](exec::BlobWriter& writer) {
    if (!is_first()) return;
    const std::vector<std::string> texts = find_candidates(total);
    writer.write(texts.size());
    for (const std::string& text : texts) writer.write_text(text);
  });
  exec::BlobReader reader(results.front());
  std::vector<traces::CheckpointManifest> candidates;
  for (std::size_t left = reader.checked_count(1); left > 0; --left)
    candidates.push_back(traces::read_manifest(reader.read_text(), options_.folder));
  return candidates;
}

/// A checksum detects damage, and not a state that another program wrote.
void Checkpoints::restore_part(const exec::ResumableTraining& training,
                               const traces::CheckpointManifest& manifest,
                               const std::string& state) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{}/{}: {}; give another folder to begin again", options_.folder,
                            traces::part_name(manifest.step, own_part()), why));
  };
  try {
    training.restore(as_bytes(state));
  } catch (const Error& error) {
    refuse(error.what());
  }
  if (training.steps() != manifest.step)
    refuse(fmt::format("it has the losses of {} instead of {}", counted(training.steps(), "step"),
                       manifest.step));
}

/// Returns false, and prints why, if a process cannot read its part.
bool Checkpoints::restore(const exec::ResumableTraining& training,
                          const traces::CheckpointManifest& manifest) {
  std::string state;
  bool is_whole = true;
  const std::vector<exec::Blob> results = gather_results([&](exec::BlobWriter& writer) {
    std::string fault;
    try {
      state = folder_.read_part(manifest, own_part());
    } catch (const Error& error) {
      fault = error.what();
    }
    writer.write_text(fault);
  });
  for (const exec::Blob& result : results) {
    const std::string fault = exec::BlobReader(result).read_text();
    if (fault.empty()) continue;
    print_once(fault);
    is_whole = false;
  }
  if (is_whole) gather_results([&](exec::BlobWriter&) { restore_part(training, manifest, state); });
  return is_whole;
}

std::int32_t Checkpoints::begin(const exec::ResumableTraining& training, std::int32_t total) {
  const std::vector<traces::CheckpointManifest> candidates = agree_on_candidates(total);
  for (const traces::CheckpointManifest& manifest : candidates) {
    if (!restore(training, manifest)) continue;
    report_.resumed_step = manifest.step;
    print_once(fmt::format("resumes after step {}, from {}/{}", manifest.step, options_.folder,
                           traces::manifest_name(manifest.step)));
    return manifest.step;
  }
  if (!candidates.empty())
    throw Error("no checkpoint in " + options_.folder +
                " is whole; give another folder to begin again");
  if (options_.resume)
    print_once("begins at step 0: " + options_.folder +
               " has no checkpoint before the end of this run");
  return 0;
}

void Checkpoints::save_if_due(const exec::ResumableTraining& training) {
  const std::int32_t step = training.steps();
  if (step % options_.every != 0) return;
  const Nanos begin = exec::read_monotonic_clock();
  const std::vector<exec::Blob> results = gather_results([&](exec::BlobWriter& writer) {
    const traces::CheckpointPart part =
        folder_.write_part(step, own_part(), as_text(training.save()));
    writer.write(part.bytes);
    writer.write_text(part.checksum);
  });
  traces::CheckpointManifest manifest{step, identity_, {}};
  SavedCheckpoint saved{step};
  for (const exec::Blob& result : results) {
    exec::BlobReader reader(result);
    const auto bytes = reader.read<Bytes>();
    manifest.parts.push_back({bytes, reader.read_text()});
    saved.bytes += bytes;
  }
  gather_results([&](exec::BlobWriter&) {
    if (is_first()) folder_.complete(manifest);
  });
  saved.time = exec::read_monotonic_clock() - begin;
  report_.saved.push_back(saved);
}

std::string to_string(const CheckpointReport& report, Nanos step) {
  if (report.saved.empty())
    return fmt::format("no checkpoint was due: --every {} is more than the steps of this run",
                       report.every);
  const SavedCheckpoint mean = mean_of(report.saved);
  return fmt::format("{} in {}: {} and {:.3g} ms each, {:.2g} % of the time",
                     counted(std::ssize(report.saved), "checkpoint"), report.folder,
                     counted(mean.bytes, "byte"), static_cast<double>(mean.time) / 1e6,
                     100 * time_share(report, step));
}

void write_checkpoints_json(traces::JsonWriter& json, const CheckpointReport& report, Nanos step) {
  json.key("checkpoints").begin_object().member("folder", report.folder);
  json.member("every", report.every).member_or_null("resumed_step", report.resumed_step);
  json.key("saved").begin_array();
  for (const SavedCheckpoint& saved : report.saved) {
    json.begin_object().member("step", saved.step).member("bytes", saved.bytes);
    json.member("time_ns", saved.time).end_object();
  }
  json.end_array().member("time_share", time_share(report, step)).end_object();
}

}  // namespace bubblescope::tools
