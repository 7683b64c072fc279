// One flag of a command: its names, its value, what --help says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}

namespace bubblescope::tools {

template <class Number>
struct RangeLimits {
  Number min_value;
  Number max_value;
};

/// The range of a flag's number, both ends included.
struct InRange {
  InRange(int min_value, int max_value) : ends(RangeLimits<int>{min_value, max_value}) {}
  InRange(std::int64_t min_value, std::int64_t max_value)
      : ends(RangeLimits<std::int64_t>{min_value, max_value}) {}
  InRange(double min_value, double max_value) : ends(RangeLimits<double>{min_value, max_value}) {}
  std::variant<RangeLimits<int>, RangeLimits<std::int64_t>, RangeLimits<double>> ends;
};

/// One flag, for further settings. It lives as long as its CommandFlags.
class CommandFlag {
 public:
  /// Adds the flag of that name to the library's parser.
  using Make = std::function<CLI::Option*(CLI::App&, const std::string& name)>;
  CommandFlag(std::string name, std::string heading, Make make)
      : name_(std::move(name)), heading_(std::move(heading)), make_(std::move(make)) {}
  CommandFlag* check(const InRange& range);
  CommandFlag* type_name(std::string name);  ///< of its value in --help, such as FILE
  CommandFlag* required();
  /// Sets the separator of several values in one word.
  CommandFlag* delimiter(char sign);
  CommandFlag* takes_words();  ///< all up to the next flag, if no word is positional
  /// Reads words of these names after its value as parts of it: "mlp moe" as "mlp,moe".
  CommandFlag* joins(std::vector<std::string> names);
  std::size_t count() const;  ///< how often it was given
  bool takes_value() const { return !takes_none_; }
  bool is_joined(const std::string& word) const;

 private:
  friend class CommandFlags;
  using Setting = std::function<void(CLI::Option&)>;
  CommandFlag* set(Setting setting);
  bool has_name(std::string_view word) const;
  void add_to(CLI::App& app);

  std::string name_;  ///< with its aliases: "-m,--microbatches"
  std::string heading_;
  Make make_;
  std::vector<Setting> settings_;
  std::vector<std::string> joined_names_;
  bool is_required_ = false;
  bool takes_words_ = false, takes_none_ = false;
  CLI::Option* option_ = nullptr;  ///< null unless the command line requires it
};

}  // namespace bubblescope::tools
