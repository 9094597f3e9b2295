# cmake -DFILES="a;b" -DOUT=x.cpp -P EmbedFiles.cmake: writes a C++ source with the files' bytes.
# Bytes are written as numbers: a string literal may not be longer than 64 KiB in some compilers.
set(table "")
set(text "#include \"server/web_files.h\"\n\nnamespace exl3::server {\nnamespace {\n\n")
set(i 0)
foreach(file ${FILES})
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  get_filename_component(name ${file} NAME)
  string(APPEND text "const unsigned char file_${i}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", file_${i}, sizeof file_${i}},\n")
  math(EXPR i "${i} + 1")
endforeach()
string(APPEND text "const WebFile files[] = {\n${table}};\n\n}  // namespace\n\n"
  "std::span<const WebFile> web_files() {\n    return files;\n}\n\n}  // namespace exl3::server\n")
file(WRITE ${OUT} "${text}")
