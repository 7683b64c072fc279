// Adds flags whose text is parsed.
#include "tools/flags/choice.h"

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope::tools {

namespace {

/// The one of a flag's names that was given; the last where none was, as in "-m8".
std::string name_as_given(const CommandFlags& app, const std::string& names) {
  const std::vector<std::string> all = split(names, ',');
  for (const std::string& word : app.words()) {
    const std::string name = word.substr(0, word.find('='));
    if (std::find(all.begin(), all.end(), name) != all.end()) return name;
  }
  return all.back();
}

std::function<void(const std::string&)> naming_errors(
    const CommandFlags& app, const std::string& names,
    const std::function<void(const std::string&)>& read) {
  return [&app, names, read](const std::string& text) {
    name_errors(name_as_given(app, names), [&] { read(text); });
  };
}

}  // namespace

void name_errors(const std::string& flag, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(flag + ": " + error.what());
  }
}

CommandFlag* add_parsed(CommandFlags& app, const Flag& flag,
                        const std::function<void(const std::string&)>& read) {
  return app.add_parsed(flag.name, naming_errors(app, flag.name, read), flag.help)
      ->type_name(flag.type);
}

void add_repeated(CommandFlags& app, const Flag& flag,
                  const std::function<void(const std::string&)>& read) {
  const auto read_all = [read_one = naming_errors(app, flag.name, read)](const auto& texts) {
    for (const std::string& text : texts) read_one(text);
  };
  app.add_parsed_list(flag.name, read_all, flag.help)->type_name(flag.type);
}

}  // namespace bubblescope::tools
