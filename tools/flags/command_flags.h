// The flags and positional words of one command: their names, what they set, what --help says.
//
// A command has a hundred flags and is given a few: only those are passed to the library that
// parses them, and all where it must explain or complain. Only this folder includes that library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  using Make = std::function<CLI::Option*(CLI::App&)>;
  CommandFlag(std::string name, std::string heading, Make make)
      : name_(std::move(name)), heading_(std::move(heading)), make_(std::move(make)) {}
  CommandFlag* check(const InRange& range);
  CommandFlag* type_name(const std::string& name);  ///< of its value in --help, such as FILE
  CommandFlag* required();
  /// Sets the separator of several values in one word.
  CommandFlag* delimiter(char sign);
  CommandFlag* takes_words();  ///< all up to the next flag, if no word is positional
  std::size_t count() const;   ///< how often it was given

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
  bool is_required_ = false;
  bool takes_words_ = false, takes_none_ = false;
  CLI::Option* option_ = nullptr;  ///< null unless the command line requires it
};

/// All flags of a command, each of which takes one word; one with a list may be repeated. Names are
/// written as in "-m,--microbatches"; "!--no-verify" sets false; one without dashes is positional.
class CommandFlags {
 public:
  /// `name` precedes the flags in --help, such as "bubblescope simulate".
  CommandFlags(const std::string& description, const std::string& name);
  ~CommandFlags();
  CommandFlags(const CommandFlags&) = delete;
  CommandFlags& operator=(const CommandFlags&) = delete;

  /// Sets `value` when it is given. command_flags.cc lists the types that it may have.
  template <class Value>
  CommandFlag* add_option(const std::string& name, Value& value, const std::string& help);
  CommandFlag* add_flag(const std::string& name, bool& value, const std::string& help);
  /// Passes its text to `read` when it is given.
  CommandFlag* add_parsed(const std::string& name,
                          const std::function<void(const std::string&)>& read,
                          const std::string& help);
  /// The same for a flag that may be repeated: all its texts at once.
  CommandFlag* add_parsed_list(const std::string& name,
                               const std::function<void(const std::vector<std::string>&)>& read,
                               const std::string& help);
  /// Accepts a renamed flag's old name, such as "--ragged"; neither --help nor suggestions show it.
  void accept_old_name(const std::string& old_name, const std::string& name);
  /// Sets the heading of --help for the flags that are added from now on.
  void set_heading(const std::string& text);
  std::string heading() const;
  void footer(const std::string& text);              ///< the text at the end of --help
  void hide(const std::vector<std::string>& flags);  ///< from --help and from suggestions
  std::size_t count(const std::string& flag) const;  ///< how often it was given
  bool knows(const std::string& flag) const;
  std::size_t size() const;  ///< the number of flags
  /// Returns what was given of the first flags that were added, as words that give it again.
  std::vector<std::string> given_words(std::size_t flags) const;
  /// Returns the flags under the heading that were given.
  std::vector<std::string> given_under(const std::string& heading) const;
  /// Reads the words. Returns false when --help was asked for and printed.
  /// Throws Error that names the nearest known flag for an unknown one.
  bool parse(const std::vector<std::string>& words);

 private:
  struct Parser;
  void refuse_unknown_flag() const;
  void expect_values(const std::vector<std::string>& words) const;
  std::vector<std::string> current_words(const std::vector<std::string>& words) const;
  const CommandFlag* find(std::string_view flag) const;
  void add_flags_to_parser(const std::vector<std::string>& words);
  CommandFlag* keep(const std::string& name, CommandFlag::Make make);
  std::unique_ptr<Parser> parser_;
};

}  // namespace bubblescope::tools
