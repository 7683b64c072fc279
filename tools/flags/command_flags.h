// The flags and words of one command: what they are called, what they set, what --help says.
//
// The library that reads them is known in this folder alone: its header costs four seconds in every
// file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class Option;
}

namespace bubblescope {

template <class Number>
struct RangeEnds {
  Number least;
  Number most;
};

/// The numbers that a flag may have, both ends among them.
struct InRange {
  InRange(int least, int most) : ends(RangeEnds<int>{least, most}) {}
  InRange(std::int64_t least, std::int64_t most) : ends(RangeEnds<std::int64_t>{least, most}) {}
  InRange(double least, double most) : ends(RangeEnds<double>{least, most}) {}
  std::variant<RangeEnds<int>, RangeEnds<std::int64_t>, RangeEnds<double>> ends;
};

/// One flag, for saying more of it. It lives as long as its CommandFlags.
class CommandFlag {
 public:
  explicit CommandFlag(CLI::Option* option) : option_(option) {}
  CommandFlag* check(const InRange& range);
  /// How --help writes its value, such as FILE.
  CommandFlag* type_name(const std::string& name);
  CommandFlag* required();
  /// Between several values in one word.
  CommandFlag* delimiter(char sign);
  /// Has one value each time that it is given, and may be given again.
  CommandFlag* repeated();
  /// How often it was given.
  std::size_t count() const;

 private:
  CLI::Option* option_;
};

/// All flags of a command. They are named as in "-m,--microbatches"; "!--no-proof" sets false;
/// without dashes it is a word that stands alone.
class CommandFlags {
 public:
  /// `name` is what stands before the flags, such as "bubblescope simulate".
  CommandFlags(const std::string& description, const std::string& name);
  ~CommandFlags();
  CommandFlags(const CommandFlags&) = delete;
  CommandFlags& operator=(const CommandFlags&) = delete;

  /// Sets `value` where it is given. Which types it may have stands in command_flags.cc.
  template <class Value>
  CommandFlag* add_option(const std::string& name, Value& value, const std::string& help);
  CommandFlag* add_flag(const std::string& name, bool& value, const std::string& help);
  /// Hands its text to `read` where it is given.
  CommandFlag* add_parsed(const std::string& name,
                          const std::function<void(const std::string&)>& read,
                          const std::string& help);
  /// The same for a flag that may be repeated: all its texts at once.
  CommandFlag* add_parsed_list(const std::string& name,
                               const std::function<void(const std::vector<std::string>&)>& read,
                               const std::string& help);

  /// The heading under which --help lists what is added from now on.
  void set_heading(const std::string& text);
  /// The heading now.
  std::string heading() const;
  /// Sets the last words of --help.
  void footer(const std::string& text);

  /// How often the flag was given.
  std::size_t count(const std::string& flag) const;
  /// The flags under the heading that were given.
  std::vector<std::string> given_under(const std::string& heading) const;

  /// Reads the words. Returns false when --help was asked for and printed.
  /// Throws Error that names the nearest known flag for an unknown one.
  bool parse(const std::vector<std::string>& words);

 private:
  struct Parser;
  void complain_of_unknown() const;
  CommandFlag* keep(CLI::Option* option);
  std::unique_ptr<Parser> parser_;
};

}  // namespace bubblescope
