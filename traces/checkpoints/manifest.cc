// Manifests are written in one form only, so a reader that writes again what it has read finds any
// difference.
#include "traces/checkpoints/manifest.h"

#include <limits>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kFormat = "bubblescope-checkpoint/1";

void write_parts(JsonWriter& json, const CheckpointManifest& manifest) {
  json.line(1).key("parts").begin_array();
  for (std::size_t at = 0; at < manifest.parts.size(); ++at) {
    const CheckpointPart& part = manifest.parts[at];
    json.begin_object().member("file", part_name(manifest.step, at));
    json.member("bytes", part.bytes).member("checksum", part.checksum).end_object();
  }
  json.end_array();
}

CheckpointManifest read_members(const JsonNode& root) {
  root.expect_format(kFormat);
  root.expect_keys({"format", "step", "training", "parts", "checksum"});
  CheckpointManifest manifest;
  manifest.step = root.at("step").integer32(1, std::numeric_limits<std::int32_t>::max());
  const JsonNode training = root.at("training");
  for (std::size_t at = 0; at < training.size(); ++at) {
    const JsonNode pair = training[at];
    if (pair.size() != 2) pair.refuse("must be a name and a value");
    manifest.training.emplace_back(pair[0].text(), pair[1].text());
  }
  const JsonNode parts = root.at("parts");
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const JsonNode part = parts[at];
    manifest.parts.push_back({part.at("bytes").integer(0, std::numeric_limits<Bytes>::max()),
                              part.at("checksum").text()});
  }
  return manifest;
}

}  // namespace

std::string manifest_name(std::int32_t step) { return "step-" + std::to_string(step) + ".json"; }

std::string part_name(std::int32_t step, std::size_t part) {
  return "step-" + std::to_string(step) + ".part-" + std::to_string(part);
}

std::string write_manifest(const CheckpointManifest& manifest) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("format", kFormat).member("step", manifest.step);
  json.line(1).key("training").begin_array();
  for (const auto& [name, value] : manifest.training)
    json.begin_array().value(name).value(value).end_array();
  json.end_array();
  write_parts(json, manifest);
  const std::string checksum = digest_text(digest(text));
  json.line(1).member("checksum", checksum).end_object();
  return text + '\n';
}

CheckpointManifest read_manifest(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  CheckpointManifest manifest = read_members(root);
  if (write_manifest(manifest) != text)
    throw Error(file + " was damaged: its content does not match its checksum");
  return manifest;
}

}  // namespace bubblescope::traces
