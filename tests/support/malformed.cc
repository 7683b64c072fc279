// Reads the tables and runs the readers on them.
#include "tests/support/malformed.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "sim/ir/error.h"
#include "tests/support/test_paths.h"

namespace bubblescope::tests {

namespace {

std::string resolve_escapes(const std::string& text) {
  std::string resolved;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (text[at] != '\\' || std::string("nrt\\x").find(next) == std::string::npos || next == '\0') {
      resolved += text[at];
      continue;
    }
    ++at;
    if (next == 'n') resolved += '\n';
    if (next == 'r') resolved += '\r';
    if (next == 't') resolved += '\t';
    if (next == '\\') resolved += '\\';
    if (next == 'x') {
      resolved += static_cast<char>(std::stoi(text.substr(at + 1, 2), nullptr, 16));
      at += 2;
    }
  }
  return resolved;
}

/// The base with FIND replaced, for "FIND -> REPLACE"; without a base the edit is the whole
/// content.
std::string apply_edit(const std::string& base, const std::string& edit, const std::string& where) {
  const std::size_t arrow = edit.find(" -> ");
  if (base.empty() || arrow == std::string::npos) return edit;
  const std::string find = edit.substr(0, arrow);
  const std::size_t at = base.find(find);
  if (at == std::string::npos) {
    ADD_FAILURE() << where << ": the base has no " << find;
    return edit;
  }
  return base.substr(0, at) + edit.substr(arrow + 4) + base.substr(at + find.size());
}

}  // namespace

std::vector<MalformedCase> load_malformed(const std::string& table) {
  const std::string path = source_folder() + "/tests/fuzz/malformed/" + table;
  std::ifstream file(path);
  std::vector<MalformedCase> cases;
  std::string base;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string where = table + ":" + std::to_string(number);
    const std::size_t arrow = line.rfind(" => ");
    if (line.starts_with("base: ")) base = resolve_escapes(line.substr(6));
    if (line.empty() || line.starts_with("# ") || line.starts_with("base: ")) continue;
    if (arrow == std::string::npos) {
      ADD_FAILURE() << where << ": no \" => \" in this line";
      continue;
    }
    const std::string content = resolve_escapes(line.substr(0, arrow));
    cases.push_back({where, apply_edit(base, content, where), line.substr(arrow + 4)});
  }
  EXPECT_FALSE(cases.empty()) << "no cases in " << path;
  return cases;
}

void expect_refusals(const std::string& table,
                     const std::function<void(const std::string&)>& read) {
  for (const MalformedCase& malformed : load_malformed(table)) {
    try {
      read(malformed.content);
      ADD_FAILURE() << malformed.where << ": accepted " << malformed.content;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(malformed.message), std::string::npos)
          << malformed.where << ": said \"" << error.what() << "\"";
    }
  }
}

void expect_survival(const std::string& sound,
                     const std::function<void(const std::string&)>& read) {
  const auto try_reading = [&](const std::string& content) {
    try {
      read(content);
    } catch (const Error&) {
    }
  };
  for (std::size_t length = 0; length < sound.size(); ++length)
    try_reading(sound.substr(0, length));
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string content = sound;
    const std::size_t at = random() % content.size();
    if (round % 4 == 0) content[at] = static_cast<char>(random());
    if (round % 4 == 1) content[at] = content[random() % content.size()];
    if (round % 4 == 2) content.erase(at, 1 + random() % 8);
    if (round % 4 == 3) content.insert(at, content.substr(random() % content.size(), 8));
    try_reading(content);
  }
}

}  // namespace bubblescope::tests
