#include "cli/app.h"

int main(int argc, char** argv) {
    return exl3::cli::run_program(argc, argv);
}
