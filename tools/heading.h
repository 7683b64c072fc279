// The headings under which --help lists flags, and what is said of flags that nothing reads.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace bubblescope {

/// Flags that are added while it lives stand under this heading.
class Heading {
 public:
  Heading(CLI::App& app, const std::string& text) : app_(app) {
    app_.option_defaults()->group(text);
  }
  ~Heading() { app_.option_defaults()->group("Options"); }
  Heading(const Heading&) = delete;
  Heading& operator=(const Heading&) = delete;

 private:
  CLI::App& app_;
};

/// "bubblescope: --gpu changes nothing without --model", on stderr, for each flag that was given
/// under the heading; `why` is what follows "nothing".
void warn_of_unused(const CLI::App& app, const std::string& heading, const std::string& why);

}  // namespace bubblescope
