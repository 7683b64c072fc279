// A checkpoint that was cut or damaged is never taken for whole.
#include "traces/checkpoints/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

namespace fs = std::filesystem;

class CheckpointFolders : public TemporaryFolder {
 protected:
  /// Writes a checkpoint of two parts.
  traces::CheckpointManifest save(const traces::CheckpointFolder& folder, std::int32_t step) {
    traces::CheckpointManifest manifest{step, {{"schedule", "1f1b"}, {"`pp`", "2"}}, {}};
    for (const std::size_t part : {0, 1})
      manifest.parts.push_back(folder.write_part(step, part, part_of_step(step, part)));
    folder.complete(manifest);
    return manifest;
  }

  static std::string part_of_step(std::int32_t step, std::size_t part) {
    return "part " + std::to_string(part) + " of step " + std::to_string(step) + '\0' + "weights";
  }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path("saved")))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
};

/// All texts that differ from this one by a flipped bit, or by a cut.
std::vector<std::string> damage(const std::string& text) {
  std::vector<std::string> damaged;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      damaged.push_back(text);
      damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ (1 << bit));
    }
    damaged.push_back(text.substr(0, at));
    damaged.push_back(text.substr(0, at) + text.substr(at + 1));
    damaged.push_back(text.substr(0, at) + std::string(text.size() - at, '\0'));
  }
  damaged.push_back(text + '\n');
  damaged.push_back(text + text);
  return damaged;
}

TEST_F(CheckpointFolders, GiveBackWhatWasSaved) {
  const traces::CheckpointFolder folder(path("saved"));
  EXPECT_TRUE(folder.find().manifests.empty());
  const traces::CheckpointManifest saved = save(folder, 4);
  const traces::FoundCheckpoints found = folder.find();
  EXPECT_TRUE(found.faults.empty());
  EXPECT_EQ(found.manifests, std::vector{saved});
  EXPECT_EQ(folder.read_part(found.manifests[0], 1), part_of_step(4, 1));
  EXPECT_EQ(error_of([&] { folder.read_part(found.manifests[0], 2); }),
            path("saved/step-4.part-2") + " is not in its checkpoint, which has 2 parts");
}

TEST_F(CheckpointFolders, KeepTheNewestAndTheOneBefore) {
  const traces::CheckpointFolder folder(path("saved"));
  for (const std::int32_t step : {2, 4, 10}) save(folder, step);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-10.json", "step-10.part-0", "step-10.part-1",
                                               "step-4.json", "step-4.part-0", "step-4.part-1"}));
  EXPECT_EQ(folder.find().manifests[0].step, 10);
  // A run that was resumed after step 4 does not remove what lies ahead of it.
  save(folder, 6);
  EXPECT_EQ(folder.find().manifests.size(), 3u);
}

// The newest checkpoint may be damaged later, so the one that stays beside it must be whole.
TEST_F(CheckpointFolders, KeepOneBeforeWhoseManifestIsWhole) {
  const traces::CheckpointFolder folder(path("saved"));
  for (const std::int32_t step : {2, 4}) save(folder, step);
  traces::write_file(path("saved/step-4.json"), "damaged");
  save(folder, 6);
  EXPECT_EQ(names(), (std::vector<std::string>{"step-2.json", "step-2.part-0", "step-2.part-1",
                                               "step-6.json", "step-6.part-0", "step-6.part-1"}));
}

TEST_F(CheckpointFolders, AreNotWholeWithoutTheirManifest) {
  const traces::CheckpointFolder folder(path("saved"));
  save(folder, 2);
  folder.write_part(4, 0, "cut");
  folder.write_part(4, 1, "cut");
  EXPECT_EQ(folder.find().manifests.size(), 1u);
  EXPECT_EQ(folder.find().manifests[0].step, 2);
  save(folder, 6);
  save(folder, 8);
  const std::vector<std::string> left = names();
  EXPECT_EQ(std::count(left.begin(), left.end(), "step-4.part-0"), 0) << "leftovers stay for ever";
}

TEST_F(CheckpointFolders, LeaveForeignFilesAlone) {
  const traces::CheckpointFolder folder(path("saved"));
  const std::vector<std::string> foreign{"notes.txt",      "step-.json",   "step-x.json",
                                         "step-1.part-",   "step-0.json",  "step-1.part-0.old",
                                         "xstep-1.part-0", "step-02.json", "step-2.part-00"};
  for (const std::string& name : foreign) traces::write_file(path("saved/" + name), "mine");
  for (const std::int32_t step : {2, 4, 6}) save(folder, step);
  EXPECT_TRUE(folder.find().faults.empty());
  for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(path("saved/" + name))) << name;
}

TEST_F(CheckpointFolders, FindEveryDamageOfAManifest) {
  const traces::CheckpointFolder folder(path("saved"));
  const std::string text = traces::write_manifest(save(folder, 4));
  EXPECT_EQ(traces::read_file(path("saved/step-4.json")), text);
  for (const std::string& damaged : damage(text)) {
    if (damaged == text) continue;
    EXPECT_TRUE(fails_with([&] { traces::read_manifest(damaged, "saved/step-4.json"); },
                           "saved/step-4.json"))
        << damaged;
  }
}

TEST_F(CheckpointFolders, FindEveryDamageOfAPart) {
  const traces::CheckpointFolder folder(path("saved"));
  const traces::CheckpointManifest manifest = save(folder, 4);
  const std::string name = path("saved/step-4.part-1");
  for (const std::string& damaged : damage(part_of_step(4, 1))) {
    if (damaged == part_of_step(4, 1)) continue;
    traces::write_file(name, damaged);
    EXPECT_TRUE(fails_with([&] { folder.read_part(manifest, 1); }, name));
  }
  fs::remove(name);
  EXPECT_EQ(error_of([&] { folder.read_part(manifest, 1); }),
            "cannot read " + name + ": No such file or directory");
}

TEST_F(CheckpointFolders, ReportARenamedManifest) {
  const traces::CheckpointFolder folder(path("saved"));
  save(folder, 4);
  fs::rename(path("saved/step-4.json"), path("saved/step-8.json"));
  EXPECT_TRUE(folder.find().manifests.empty());
  EXPECT_EQ(folder.find().faults.size(), 1u);
}

TEST_F(CheckpointFolders, NeedAPlaceToBe) {
  traces::write_file(path("file"), "");
  EXPECT_EQ(error_of([&] { traces::CheckpointFolder(path("file")); }),
            "cannot create the folder " + path("file") + ": it is a file; give another name");
  EXPECT_EQ(error_of([&] { traces::CheckpointFolder(path("missing/saved")); }),
            "cannot create the folder " + path("missing/saved") + ": No such file or directory");
  EXPECT_TRUE(fails_with([&] { traces::CheckpointFolder(""); }, "cannot create the folder "));
}

TEST(Digest, DiffersForEveryFlippedBitAndLength) {
  const std::string zeros(40, '\0');
  std::vector<std::uint64_t> digests{digest(zeros)};
  for (std::size_t bit = 0; bit < 8 * zeros.size(); ++bit) {
    std::string flipped = zeros;
    flipped[bit / 8] = static_cast<char>(1 << bit % 8);
    digests.push_back(digest(flipped));
  }
  for (std::size_t size = 0; size < zeros.size(); ++size)
    digests.push_back(digest(zeros.substr(0, size)));
  digests.push_back(digest(zeros, 1));
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
  EXPECT_EQ(digest_text(0x0123456789abcdef), "0123456789abcdef");
}

}  // namespace
}  // namespace bubblescope::tests
