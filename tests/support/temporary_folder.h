// A separate folder for every test, removed after it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace bubblescope::tests {

class TemporaryFolder : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::filesystem::path folder_;
};

}  // namespace bubblescope::tests
