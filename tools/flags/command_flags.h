// The flags and positional words of one command: their names, what they set, what --help says.
//
// A command has a hundred flags and is given a few: only those are passed to the library that
// parses them, and all where it must explain or complain. Only this folder includes that library.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/flags/command_flag.h"

namespace bubblescope::tools {

/// A flag as it was given, by its first long name.
struct FlagWithValue {
  std::string flag;
  std::optional<std::string> value = {};  ///< nullopt: it takes none
};

/// Returns the words that give these flags.
std::vector<std::string> words_of(const std::vector<FlagWithValue>& flags);

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
  CommandFlag* add_option(std::string name, Value& value, std::string help);
  CommandFlag* add_flag(std::string name, bool& value, std::string help);
  /// Passes its text to `read` when it is given.
  CommandFlag* add_parsed(std::string name, std::function<void(const std::string&)> read,
                          std::string help);
  /// Adds a flag that may be repeated, and passes all its texts to `read` at once.
  CommandFlag* add_parsed_list(std::string name,
                               std::function<void(const std::vector<std::string>&)> read,
                               std::string help);
  /// Accepts a renamed flag's old name, such as "--ragged"; neither --help nor suggestions show it.
  void accept_old_name(const std::string& old_name, const std::string& name);
  /// Sets the heading of --help for the flags that are added from now on.
  void set_heading(const std::string& text);
  std::string heading() const;
  void footer(const std::string& text);              ///< the text at the end of --help
  void hide(const std::vector<std::string>& flags);  ///< from --help and from suggestions
  std::size_t count(const std::string& flag) const;  ///< how often it was given
  bool knows(const std::string& flag) const;
  /// The flag of a name, such as "--pp"; null where the command has none.
  const CommandFlag* find(std::string_view flag) const;
  std::vector<std::string> long_names() const;  ///< of all flags, with "--"
  std::size_t size() const;                     ///< the number of flags
  std::string name() const;                     ///< of the command: "bubblescope simulate"
  /// Returns what was given of the first flags that were added. A flag with several values is
  /// there once for each.
  std::vector<FlagWithValue> given_flags(std::size_t flags) const;
  /// Returns the flags under the heading that were given.
  std::vector<std::string> given_under(const std::string& heading) const;
  /// Reads the words. Returns false when --help was asked for and printed.
  /// Throws Error that names the nearest known flag for an unknown one.
  bool parse(const std::vector<std::string>& words);
  /// The words that were parsed, as they were given.
  const std::vector<std::string>& words() const;

 private:
  struct Parser;
  void refuse_unknown_flag() const;
  void expect_values(const std::vector<std::string>& words) const;
  std::vector<std::string> renamed_words() const;
  void add_flags_to_parser(const std::vector<std::string>& words);
  CommandFlag* keep(std::string name, CommandFlag::Make make);
  std::unique_ptr<Parser> parser_;
};

}  // namespace bubblescope::tools
